// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

const (
	asking = "  request: {object: " + deployment + "}\n"
	rules  = "matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}"
)

// candidate returns a policy in the flow style of YAML.
func candidate(apiVersion, name, validations string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: ValidatingAdmissionPolicy, metadata: {name: %s}, spec: {%s, validations: %s}}", apiVersion, name, rules, validations)
}

const (
	ours  = "policy.portcullis.dev/v1alpha1"
	home  = "admissionregistration.k8s.io/v1"
	sound = `[{expression: "true"}]`
)

func binding(apiVersion, name, policyName string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: ValidatingAdmissionPolicyBinding, metadata: {name: %s}, spec: {policyName: %s, validationActions: [Deny]}}", apiVersion, name, policyName)
}

func TestCandidates(t *testing.T) {
	tests := []struct {
		name     string
		policies []string
		want     []string
	}{
		{name: "none"},
		{name: "our apiVersion", policies: []string{candidate(ours, "a", sound), binding(ours, "b", "a")}, want: []string{"ValidatingAdmissionPolicy/a", "ValidatingAdmissionPolicyBinding/b"}},
		{name: "home apiVersion", policies: []string{candidate(home, "a", sound), binding(home, "b", "a")}, want: []string{"ValidatingAdmissionPolicy/a", "ValidatingAdmissionPolicyBinding/b"}},
		{name: "one name for two kinds", policies: []string{candidate(home, "a", sound), binding(ours, "a", "a")}, want: []string{"ValidatingAdmissionPolicy/a", "ValidatingAdmissionPolicyBinding/a"}},
		{
			name:     "as a cluster has it",
			policies: []string{strings.Replace(candidate(home, "a", sound), "name: a}", "name: a, namespace: ignored, uid: u, resourceVersion: \"1\", generation: 3}, status: {observedGeneration: 3}", 1)},
			want:     []string{"ValidatingAdmissionPolicy/a"},
		},
		{
			name:     "a list of one",
			policies: []string{"{apiVersion: v1, kind: List, items: [" + candidate(home, "a", sound) + "]}"},
			want:     []string{"ValidatingAdmissionPolicy/a"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.ask(t, asking+"  policies: ["+strings.Join(test.policies, ", ")+"]")
			if got := names(f.candidates); !slices.Equal(got, test.want) {
				t.Errorf("got candidates %q, want %q", got, test.want)
			}
		})
	}
}

func TestUnusableCandidates(t *testing.T) {
	tooMany := strings.TrimSuffix(strings.Repeat("{}, ", 1001), ", ")
	tests := []struct {
		name, policies string
		want           []string
	}{
		{"unknown field", candidate(ours, "a", `[{expression: "true", massage: m}]`) + ", " + candidate(home, "b", sound+", extra: 1"), []string{
			`spec.policies[0]: Invalid value: "a": strict decoding error: unknown field "spec.validations[0].massage"`,
			`spec.policies[1]: Invalid value: "b": strict decoding error: unknown field "spec.extra"`,
		}},
		{"field of the wrong type", candidate(ours, "a", `{}`), []string{
			`spec.policies[0]: Invalid value: "a": json: cannot unmarshal object into Go struct field ValidatingAdmissionPolicySpec.spec.validations of type []v1.Validation`,
		}},
		{"unknown kind", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {}", []string{
			`spec.policies[0].kind: Unsupported value: "ConfigMap": supported values: "ClusterPolicy", "Policy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"`,
			`spec.policies[1].kind: Unsupported value: "": supported values: "ClusterPolicy", "Policy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"`,
		}},
		{"unknown version", candidate("admissionregistration.k8s.io/v1beta1", "a", sound), []string{
			`spec.policies[0].apiVersion: Unsupported value: "admissionregistration.k8s.io/v1beta1": supported values: "policy.portcullis.dev/v1alpha1", "admissionregistration.k8s.io/v1"`,
		}},
		{"twice", candidate(ours, "a", sound) + ", " + candidate(home, "a", sound), []string{`spec.policies[1]: Duplicate value: "ValidatingAdmissionPolicy/a"`}},
		{"no objects", `null, [], "a", 1`, []string{
			"spec.policies[0]: Invalid value: empty: give an object with apiVersion and kind",
			"spec.policies[1]: Invalid value: found a list; an object with apiVersion and kind is needed",
			"spec.policies[2]: Invalid value: found a string; an object with apiVersion and kind is needed",
			"spec.policies[3]: Invalid value: found a number; an object with apiVersion and kind is needed",
		}},
		{"several in one", "{apiVersion: v1, kind: List, items: [" + candidate(ours, "a", sound) + ", " + candidate(ours, "b", sound) + "]}", []string{
			"spec.policies[0]: Invalid value: a list of 2 objects: give each of them an entry of its own",
		}},
		{"too many", tooMany, []string{"spec.policies: Too many: 1001: must have at most 1000 items"}},
		{"like a bootstrap policy", candidate(home, "a.static.k8s.io", sound) + ", " + binding(ours, "b.static.k8s.io", "a.static.k8s.io"), []string{
			`spec.policies[0].metadata.name: Invalid value: "a.static.k8s.io": names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be managed via the API`,
			`spec.policies[1].metadata.name: Invalid value: "b.static.k8s.io": names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be managed via the API`,
			`spec.policies[1].spec.policyName: Invalid value: "a.static.k8s.io": names ending with ".static.k8s.io" are those of bootstrap policies, which only bindings in their directory bind: put this binding there, or name a stored policy`,
		}},
		{"no name", strings.Replace(candidate(ours, "a", sound), "name: a", "", 1), []string{"spec.policies[0].metadata.name: Required value: name or generateName is required"}},
		{"broken CEL, twice", candidate(ours, "a", sound) + ", " + candidate(ours, "b", `[{expression: "object.spec.replicas <="}, {expression: "true"}, {expression: "1"}]`), []string{
			"spec.policies[1].spec.validations[0].expression: Invalid value: \"object.spec.replicas <=\": compilation failed: ERROR: <input>:1:24: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | object.spec.replicas <=\n | .......................^",
			`spec.policies[1].spec.validations[2].expression: Invalid value: "1": must evaluate to bool but got int`,
		}},
		{"binding without a policy", strings.Replace(binding(ours, "b", "a"), "policyName: a, ", "", 1), []string{"spec.policies[0].spec.policyName: Required value"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			wantFaults(t, newFixture(t).faults(t, asking+"  policies: ["+test.policies+"]"), test.want)
		})
	}
}

// TestDuplicateKeys needs JSON: a YAML decoder in front of the door keeps the
// last of equal keys.
func TestDuplicateKeys(t *testing.T) {
	f := newFixture(t)
	preview := f.preview(t, asking+"  policies: [{}]\n  cluster: [{}]")
	preview.Spec.Policies[0].Raw = []byte(`{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"ValidatingAdmissionPolicy","spec":{},"spec":{"a":1}}`)
	preview.Spec.Cluster[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"}}`)
	_, err := f.door.Create(t.Context(), preview, nil, nil)
	want := `AdmissionPreview.policy.portcullis.dev "" is invalid: [` +
		`spec.cluster[0]: Invalid value: key "name" is set twice; keep one of them, ` +
		`spec.policies[0]: Invalid value: key "spec" is set twice; keep one of them]`
	if err == nil || err.Error() != want {
		t.Errorf("got error\n%v\nwant\n%s", err, want)
	}
}

func TestStoredPolicies(t *testing.T) {
	for spec, want := range map[string]bool{"": true, "  storedPolicies: Include\n": true, "  storedPolicies: Ignore\n": false} {
		f := newFixture(t)
		f.ask(t, asking+spec)
		if f.stored != want {
			t.Errorf("%q: judged with stored policies: %v, want %v", spec, f.stored, want)
		}
	}
	wantFaults(t, newFixture(t).faults(t, asking+"  storedPolicies: ignore"),
		[]string{`spec.storedPolicies: Unsupported value: "ignore": supported values: "Include", "Ignore"`})
}

func TestCluster(t *testing.T) {
	f := newFixture(t)
	f.ask(t, asking+"  cluster:\n  - {apiVersion: v1, kind: Namespace, metadata: {name: prod, labels: {team: a}}}")
	namespace, err := f.view.Namespace(t.Context(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	if namespace.Labels["team"] != "a" || namespace.Labels[corev1.LabelMetadataName] != "prod" {
		t.Errorf("got labels %v, want that given and what the API server adds", namespace.Labels)
	}
	f.ask(t, asking)
	if _, err := f.view.Namespace(t.Context(), "prod"); err == nil {
		t.Error("the object of one preview is seen by the next")
	}
}

func TestUnusableCluster(t *testing.T) {
	tooMany := strings.TrimSuffix(strings.Repeat("{}, ", 10_001), ", ")
	tests := []struct {
		name, cluster string
		want          []string
	}{
		{"no object", `null, "a"`, []string{
			"spec.cluster[0]: Invalid value: empty: give an object with apiVersion and kind",
			"spec.cluster[1]: Invalid value: found a string; an object with apiVersion and kind is needed",
		}},
		{"too many", tooMany, []string{"spec.cluster: Too many: 10001: must have at most 10000 items"}},
		{"kind that the cluster lacks", unknown, []string{
			`spec.cluster[0].kind: Not found: "Widget": no such kind in example.com/v1; add its CustomResourceDefinition`,
		}},
		{"twice", namespace + ", " + namespace, []string{`spec.cluster[1].metadata.name: Duplicate value: "prod": Namespace is given twice; keep one of them`}},
		{"no name", "{apiVersion: v1, kind: ConfigMap}", []string{"spec.cluster[0].metadata.name: Required value: give the object a name"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// Its definition may be what is at fault, so the kind of the object
			// is not looked up.
			spec := "  request: {object: " + unknown + "}\n  cluster: [" + test.cluster + "]"
			wantFaults(t, newFixture(t).faults(t, spec), test.want)
		})
	}
}

// TestExistingObject finds in the cluster what the request changes or deletes.
func TestExistingObject(t *testing.T) {
	const labelled = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: prod, labels: {from: %s}}}"
	request := fmt.Sprintf(labelled, "request")
	tests := []struct{ name, spec, want string }{
		{"CREATE", "  request: {object: " + request + "}", "nothing"},
		{"UPDATE", "  request: {object: " + deployment + ", oldObject: " + request + "}", "request"},
		{"DELETE", "  request: {oldObject: " + request + "}", "request"},
		{"held by the cluster", "  request: {oldObject: " + request + "}\n  cluster: [" + fmt.Sprintf(labelled, "cluster") + "]", "cluster"},
		{"subresource", "  request: {subResource: status, oldObject: " + request + "}", "nothing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.ask(t, test.spec)
			found, err := f.view.Objects(t.Context(), cluster.Selection{
				Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "prod", Name: "web",
			})
			if err != nil {
				t.Fatal(err)
			}
			got := "nothing"
			if len(found) > 0 {
				got = found[0].GetLabels()["from"]
			}
			if got != test.want {
				t.Errorf("got the object of the %s, want that of the %s", got, test.want)
			}
		})
	}
}
