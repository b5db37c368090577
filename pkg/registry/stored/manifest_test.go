// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/install"
)

const mutateSpec = `
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchesJson6902: '[]'}
`

func decodeNew(t *testing.T, text string) (runtime.Object, string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := install.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	manifests, err := NewManifests(scheme)
	if err != nil {
		t.Fatal(err)
	}
	manifest := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &manifest.Object); err != nil {
		t.Fatal(err)
	}
	obj, errs := manifests.DecodeNew(manifest)
	var faults []string
	for _, err := range errs {
		faults = append(faults, err.Error())
	}
	return obj, strings.Join(faults, "\n")
}

func TestManifestVersions(t *testing.T) {
	clusterPolicy := func(version string) string {
		return "apiVersion: " + version + "\nkind: ClusterPolicy\nmetadata: {name: p}" + mutateSpec
	}
	namespaced := func(version string) string {
		return "apiVersion: " + version + "\nkind: Policy\nmetadata: {name: p, namespace: team-a}" + mutateSpec
	}
	const notServed = `apiVersion: Unsupported value: "kyverno.io/v2": supported values: "policy.portcullis.dev/v1alpha1", "kyverno.io/v1", "kyverno.io/v2beta1"`
	for _, test := range []struct{ name, manifest, want string }{
		{"ours", clusterPolicy("policy.portcullis.dev/v1alpha1"), ""},
		{"v1", clusterPolicy("kyverno.io/v1"), ""},
		{"v2beta1", clusterPolicy("kyverno.io/v2beta1"), ""},
		{"namespaced", namespaced("kyverno.io/v1"), ""},
		{"with the status of Kyverno", clusterPolicy("kyverno.io/v1") + "status: {autogen: {}, ready: true, rulecount: {mutate: 1}}\n", ""},
		{"with a status of ours that is none", clusterPolicy("policy.portcullis.dev/v1alpha1") + "status: {ready: true}\n", `<nil>: Invalid value: "p": strict decoding error: unknown field "status.ready"`},
		{"another version", clusterPolicy("kyverno.io/v2"), notServed},
		{"another home", clusterPolicy("admissionregistration.k8s.io/v1"), strings.Replace(notServed, "kyverno.io/v2", "admissionregistration.k8s.io/v1", 1)},
		{"a typing error", strings.Replace(clusterPolicy("kyverno.io/v1"), "mutate:", "mutat:", 1), `<nil>: Invalid value: "p": strict decoding error: unknown field "spec.rules[0].mutat"`},
		{"not valid", "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {}\n", "spec.rules: Required value: a policy needs a rule"},
		{
			"an exception", "apiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: p}\n",
			"kind: Forbidden: there are no PolicyExceptions here: narrow match of the rule, or add an exclude to it",
		},
		{
			"a newer exception", "apiVersion: policies.kyverno.io/v1alpha1\nkind: PolicyException\nmetadata: {name: p}\n",
			"kind: Forbidden: there are no PolicyExceptions here: narrow match of the rule, or add an exclude to it",
		},
		{
			"a cleanup", "apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {name: p}\n",
			"kind: Forbidden: policies delete nothing here: keep this one where it runs, or have a CronJob delete the objects",
		},
		{
			"a global context", "apiVersion: kyverno.io/v2alpha1\nkind: GlobalContextEntry\nmetadata: {name: p}\n",
			"kind: Forbidden: there are no GlobalContextEntries here: give each rule that reads it a context entry with an apiCall or a configMap",
		},
		{
			"a kind of somebody else", "apiVersion: example.com/v1\nkind: PolicyException\nmetadata: {name: p}\n",
			`kind: Unsupported value: "PolicyException": supported values: "ClusterPolicy", "Policy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			obj, faults := decodeNew(t, test.manifest)
			if faults != test.want {
				t.Errorf("got %s, want %s", faults, test.want)
			}
			if obj == nil && test.want == "" {
				t.Error("no object")
			}
		})
	}
}
