// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"strings"
	"testing"
)

// TestBareNamesKeepTheirMeaning: beside Kyverno, Kubewarden and the policies of
// Kubernetes, what is called as it was before is theirs, and ours has names of its own.
func TestBareNamesKeepTheirMeaning(t *testing.T) {
	c := shared.ControlPlane
	for _, others := range []struct {
		group, plural, scope string
		shortNames           []string
	}{
		{"kyverno.io", "clusterpolicies", "Cluster", []string{"cpol"}},
		{"kyverno.io", "policies", "Namespaced", []string{"pol"}},
		{"policies.kubewarden.io", "clusteradmissionpolicies", "Cluster", []string{"cap"}},
		{"policies.kubewarden.io", "admissionpolicies", "Namespaced", []string{"ap"}},
		{"policies.kubewarden.io", "clusteradmissionpolicygroups", "Cluster", []string{"capg"}},
		{"policies.kubewarden.io", "admissionpolicygroups", "Namespaced", []string{"apg"}},
	} {
		makeKind(t, c, others.group, others.plural, others.scope, others.shortNames...)
		must(t, c, `{"apiVersion":"`+others.group+`/v1","kind":"`+kinds[others.plural]+`","metadata":{"name":"theirs"}}`, "apply", "-f", "-")
	}
	policies := func(version, name string) string {
		return `{"apiVersion":"` + version + `","kind":"ValidatingAdmissionPolicy","metadata":{"name":"` + name + `"},"spec":{
"matchConstraints":{"resourceRules":[{"apiGroups":["example.com"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["nothing"]}]},"validations":[{"expression":"true"}]}}
{"apiVersion":"` + version + `","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"` + name + `"},"spec":{"policyName":"` + name + `","validationActions":["Deny"]}}`
	}
	must(t, c, policies("admissionregistration.k8s.io/v1", "theirs"), "apply", "-f", "-")
	must(t, c, policies("policy.portcullis.dev/v1alpha1", "ours"), "apply", "-f", "-")
	t.Cleanup(func() {
		_, _ = kubectl(t, c, "", "delete", "validatingadmissionpolicies.v1.admissionregistration.k8s.io,validatingadmissionpolicybindings.v1.admissionregistration.k8s.io", "theirs")
		_, _ = kubectl(t, c, "", "delete", "pvap,pvapb", "ours")
	})

	const kyverno, kubewarden, kubernetes, ours = ".kyverno.io/theirs", ".policies.kubewarden.io/theirs", ".admissionregistration.k8s.io/theirs", ".policy.portcullis.dev/ours"
	for name, want := range map[string]string{
		"clusterpolicy": "clusterpolicy" + kyverno, "clusterpolicies": "clusterpolicy" + kyverno, "cpol": "clusterpolicy" + kyverno,
		"ClusterPolicy": "clusterpolicy" + kyverno, "policy": "policy" + kyverno, "policies": "policy" + kyverno, "pol": "policy" + kyverno,
		"clusteradmissionpolicy": "clusteradmissionpolicy" + kubewarden, "clusteradmissionpolicies": "clusteradmissionpolicy" + kubewarden, "cap": "clusteradmissionpolicy" + kubewarden,
		"admissionpolicy": "admissionpolicy" + kubewarden, "admissionpolicies": "admissionpolicy" + kubewarden, "ap": "admissionpolicy" + kubewarden,
		"clusteradmissionpolicygroup": "clusteradmissionpolicygroup" + kubewarden, "capg": "clusteradmissionpolicygroup" + kubewarden,
		"admissionpolicygroup": "admissionpolicygroup" + kubewarden, "apg": "admissionpolicygroup" + kubewarden,
		"validatingadmissionpolicy": "validatingadmissionpolicy" + kubernetes, "validatingadmissionpolicies": "validatingadmissionpolicy" + kubernetes,
		"ValidatingAdmissionPolicy":        "validatingadmissionpolicy" + kubernetes,
		"validatingadmissionpolicybinding": "validatingadmissionpolicybinding" + kubernetes, "validatingadmissionpolicybindings": "validatingadmissionpolicybinding" + kubernetes,

		"pvap": "validatingadmissionpolicy" + ours, "pvapb": "validatingadmissionpolicybinding" + ours,
		"validatingadmissionpolicies.policy.portcullis.dev":          "validatingadmissionpolicy" + ours,
		"validatingadmissionpolicies.v1alpha1.policy.portcullis.dev": "validatingadmissionpolicy" + ours,
		"validatingadmissionpolicybindings.policy.portcullis.dev":    "validatingadmissionpolicybinding" + ours,
	} {
		if got := strings.TrimSpace(must(t, c, "", "get", name, "-o", "name")); got != want {
			t.Errorf("kubectl get %s: got %q, want %q", name, got, want)
		}
	}
}
