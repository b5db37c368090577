// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strconv"
	"strings"
	"testing"
)

// TestDeniedForReal: what kubectl is told when a policy denies, and when none does.
func TestDeniedForReal(t *testing.T) {
	must(t, "", "create", "namespace", "denied-for-real")
	t.Cleanup(func() { _, _ = kubectl(t, "", "delete", "namespace", "denied-for-real", "--wait=false") })
	must(t, policyOf("denied-for-real.example.com", "object.spec.replicas <= 5"), "apply", "-f", "-")
	t.Cleanup(func() { _, _ = kubectl(t, "", "delete", "pvap,pvapb", "denied-for-real.example.com") })
	must(t, "", "wait", "--for=condition=Ready", "pvap/denied-for-real.example.com", "--timeout=30s")

	const wrapped = `admission webhook "validations.policy.portcullis.dev" denied the request: ` +
		`ValidatingAdmissionPolicy 'denied-for-real.example.com' with binding 'denied-for-real.example.com' denied request: failed expression: object.spec.replicas <= 5`
	for _, dry := range []string{"none", "server"} {
		output, err := kubectl(t, "", "-n", "denied-for-real", "create", "deployment", "nginx", "--image=nginx", "--replicas=6", "--dry-run="+dry)
		if err == nil || !strings.Contains(output, wrapped) {
			t.Errorf("dry run %s: got error %v and %q, want a denial with %q", dry, err, output, wrapped)
		}
	}
	must(t, "", "-n", "denied-for-real", "create", "deployment", "nginx", "--image=nginx", "--replicas=5")
	if output, err := kubectl(t, "", "-n", "denied-for-real", "scale", "deployment", "nginx", "--replicas=6"); err != nil {
		t.Errorf("the policy is not about deployments/scale, and yet: %v: %s", err, output)
	}
}

// TestNamelessRequests: what has no name yet, and what is deleted as a collection, is
// written as anything else, also where the registrations leave out some names.
func TestNamelessRequests(t *testing.T) {
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		t.Cleanup(func() { _, _ = kubectl(t, "", "delete", kind, "-l", "nameless=yes") })
		must(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"`+kind+`","metadata":{"generateName":"nameless-","labels":{"nameless":"yes"}},
"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`, "create", "--validate=ignore", "-f", "-")
		if made := must(t, "", "get", kind, "-l", "nameless=yes", "-o", "name"); strings.Count(made, "\n") != 1 {
			t.Errorf("of %s there is %q, want one", kind, made)
		}
		must(t, "", "delete", "--raw=/apis/rbac.authorization.k8s.io/v1/"+strings.ToLower(kind)+"s?labelSelector=nameless%3Dyes")
		if left := must(t, "", "get", kind, "-l", "nameless=yes", "-o", "name"); left != "" {
			t.Errorf("of %s there is %q left", kind, left)
		}
	}
}

// policyOf is a policy on Deployments of the namespace of its name up to the first
// dot, with a binding of the same name.
func policyOf(name, expression string) string {
	namespace, _, _ := strings.Cut(name, ".")
	return `apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: ` + name + `
spec:
  policyName: ` + name + `
  validationActions: [Deny]
  matchResources:
    namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: ` + namespace + `
---
apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicy
metadata:
  name: ` + name + `
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [apps]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [deployments]
  validations:
  - expression: ` + strconv.Quote(expression) + `
`
}
