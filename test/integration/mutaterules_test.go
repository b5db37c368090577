// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	typedv1alpha1 "github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned/typed/policy/v1alpha1"
)

const (
	clusterPoliciesPath = groupPath + "/clusterpolicies"
	namespacedPath      = groupPath + "/namespaces/team-a/policies"
)

// mutateSpec has fields of many types, and leaves out what has a default elsewhere.
const mutateSpec = `
rules:
- name: set label
  match:
    any:
    - resources:
        kinds: [Pod, apps/v1/Deployment]
        operations: [CREATE]
        selector: {matchLabels: {"app*": "?*"}}
    - resources: {kinds: [Secret]}
      subjects: [{kind: User, name: jane}]
  exclude:
    any:
    - clusterRoles: [cluster-admin]
  context:
  - name: settings
    variable: {value: {depth: [1, 2.5, null, "x", true]}, jmesPath: depth, default: 0}
  preconditions:
    all:
    - {key: "{{ request.operation }}", operator: In, value: [CREATE]}
  mutate:
    patchesJson6902: |-
      - op: add
        path: /metadata/labels/a
        value: "b"
- name: containers
  match: {resources: {kinds: [Pod]}}
  mutate:
    foreach:
    - list: request.object.spec.containers
      order: Ascending
      foreach:
      - list: element.env
        patchesJson6902: '[{"op": "remove", "path": "/spec/containers/0/env/0"}]'
applyRules: All
webhookConfiguration: {failurePolicy: Ignore, timeoutSeconds: 5}
`

func (a *api) clusterPolicies() typedv1alpha1.ClusterPolicyInterface {
	return a.client.PolicyV1alpha1().ClusterPolicies()
}

func (a *api) policiesOf(namespace string) typedv1alpha1.PolicyInterface {
	return a.client.PolicyV1alpha1().Policies(namespace)
}

// clusterPolicy reads a spec.
func clusterPolicy(t *testing.T, name, spec string) *v1alpha1.ClusterPolicy {
	t.Helper()
	p := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

func namespacedPolicy(t *testing.T, namespace, name, spec string) *v1alpha1.Policy {
	t.Helper()
	return &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: clusterPolicy(t, name, spec).Spec}
}

func (a *api) createClusterPolicy(t *testing.T, name, spec string) *v1alpha1.ClusterPolicy {
	t.Helper()
	created, err := a.clusterPolicies().Create(t.Context(), clusterPolicy(t, name, spec), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// manifestOf is a manifest as JSON, with what stands in the spec and nothing else.
func manifestOf(t *testing.T, kind, name, spec string) []byte {
	t.Helper()
	manifest := "apiVersion: policy.portcullis.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec:\n  " +
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
	encoded, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// TestMutateRules runs the tests of ClusterPolicy and Policy on one server.
func TestMutateRules(t *testing.T) {
	a := newAPI(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *api)
	}{
		{"ReadAsWritten", testReadAsWritten},
		{"Refused", testRulesRefused},
		{"Namespaces", testPolicyNamespaces},
		{"Watch", testWatchPolicies},
		{"Patch", testPatchRules},
		{"Apply", testApplyRules},
		{"Status", testRulesStatus},
		{"Ready", testRulesReady},
		{"Controllers", testRulesForControllers},
		{"Tables", testRulesTables},
		{"OpenAPI", testRulesOpenAPI},
	} {
		t.Run(test.name, func(t *testing.T) {
			a.resetRules(t)
			test.run(t, a)
		})
	}
}

func (a *api) resetRules(t *testing.T) {
	t.Helper()
	if err := a.clusterPolicies().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"team-a", "team-b"} {
		if err := a.policiesOf(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// testReadAsWritten: nothing is filled in, and nothing is lost.
func testReadAsWritten(t *testing.T, a *api) {
	for kind, path := range map[string]string{"ClusterPolicy": clusterPoliciesPath, "Policy": namespacedPath} {
		manifest := manifestOf(t, kind, "p", mutateSpec)
		if got := a.do(t, request{method: "POST", path: path + "?fieldValidation=Strict", body: manifest}); got.code != http.StatusCreated {
			t.Fatalf("%s: %d: %s", kind, got.code, got.body)
		}
		var wrote, read struct {
			Spec any `json:"spec"`
		}
		if err := json.Unmarshal(manifest, &wrote); err != nil {
			t.Fatal(err)
		}
		a.do(t, request{method: "GET", path: path + "/p"}).decode(t, &read)
		if !apiequality.Semantic.DeepEqual(wrote, read) {
			t.Errorf("%s is read as\n%s\nwritten was\n%s", kind, encode(t, read), encode(t, wrote))
		}
	}
}

// testRulesRefused: all faults at once, each at its field.
func testRulesRefused(t *testing.T, a *api) {
	const spec = `
rules:
- name: r
  match: {any: [{resources: {kinds: [Pod, "*"]}}]}
  validate: {message: m, pattern: {metadata: {name: "?*"}}}
- name: r
  match: {any: [{resources: {kinds: [Pod]}}]}
  mutate: {targets: [{kind: Secret}], patchStrategicMerge: {a: b}}
failurePolicy: Never
`
	want := []string{"spec.failurePolicy", "spec.rules[0].match.any[0].resources.kinds", "spec.rules[0].validate", "spec.rules[1].name", "spec.rules[1].mutate.targets"}
	_, err := a.clusterPolicies().Create(t.Context(), clusterPolicy(t, "p", spec), metav1.CreateOptions{})
	wantCauses(t, err, want)
	_, err = a.policiesOf("team-a").Create(t.Context(), namespacedPolicy(t, "team-a", "p", spec), metav1.CreateOptions{})
	wantCauses(t, err, want)
	if err == nil || !strings.Contains(err.Error(), "only mutate rules are run here: move the rule to a policy of its own, and leave that to Kyverno, or write a ValidatingAdmissionPolicy") {
		t.Errorf("what to do is not said: %v", err)
	}
	beyond := namespacedPolicy(t, "team-a", "p", mutateSpec)
	beyond.Spec.Rules[0].Match.Any[0].Resources.Namespaces = []string{"team-b"}
	_, err = a.policiesOf("team-a").Create(t.Context(), beyond, metav1.CreateOptions{})
	wantCauses(t, err, []string{"spec.rules[0].match.any[0].resources.namespaces"})
	unknown := strings.Replace(string(manifestOf(t, "ClusterPolicy", "p", mutateSpec)), `"exclude"`, `"excludes"`, 1)
	got := a.do(t, request{method: "POST", path: clusterPoliciesPath + "?fieldValidation=Strict", body: []byte(unknown)})
	if got.code != http.StatusBadRequest || !strings.Contains(string(got.body), `unknown field \"spec.rules[0].excludes\"`) {
		t.Errorf("an unknown field: %d: %s", got.code, got.body)
	}
	a.createClusterPolicy(t, "p", mutateSpec)
	without := []byte(`[{"op":"remove","path":"/spec/rules/1/mutate"}]`)
	_, err = a.clusterPolicies().Patch(t.Context(), "p", types.JSONPatchType, without, metav1.PatchOptions{})
	wantCauses(t, err, []string{"spec.rules[1].mutate"})
}

// wantCauses compares the fields of all causes.
func wantCauses(t *testing.T, err error, want []string) {
	t.Helper()
	wantReason(t, err, metav1.StatusReasonInvalid)
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		t.Errorf("error %v has no details", err)
		return
	}
	var got []string
	for _, cause := range status.Status().Details.Causes {
		got = append(got, cause.Field)
	}
	if !slices.Equal(got, want) {
		t.Errorf("causes at %v, want %v: %v", got, want, err)
	}
}

func testPolicyNamespaces(t *testing.T, a *api) {
	for _, namespace := range []string{"team-a", "team-b"} {
		if _, err := a.policiesOf(namespace).Create(t.Context(), namespacedPolicy(t, namespace, "p", mutateSpec), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for namespace, want := range map[string][]string{"team-a": {"team-a/p"}, "team-c": nil, metav1.NamespaceAll: {"team-a/p", "team-b/p"}} {
		list, err := a.policiesOf(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range list.Items {
			got = append(got, p.Namespace+"/"+p.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("in namespace %q are %v, want %v", namespace, got, want)
		}
	}
	_, err := a.policiesOf("team-a").Create(t.Context(), namespacedPolicy(t, "team-b", "q", mutateSpec), metav1.CreateOptions{})
	wantReason(t, err, metav1.StatusReasonBadRequest)
	if err := a.policiesOf("team-a").Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.policiesOf("team-b").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Errorf("the Policy of another namespace has gone: %v", err)
	}
	p := clusterPolicy(t, "c", mutateSpec)
	p.Namespace = "team-a"
	created, err := a.clusterPolicies().Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil || created.Namespace != "" {
		t.Errorf("a ClusterPolicy with a namespace: %v in %q", err, created.Namespace)
	}
}

func testWatchPolicies(t *testing.T, a *api) {
	watched, err := a.policiesOf(metav1.NamespaceAll).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	if _, err := a.policiesOf("team-b").Create(t.Context(), namespacedPolicy(t, "team-b", "w", mutateSpec), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for event := range watched.ResultChan() {
		p, ok := event.Object.(*v1alpha1.Policy)
		if !ok {
			t.Fatalf("watched a %T", event.Object)
		}
		if p.Name != "w" || event.Type != watch.Added { // of those that were there
			continue
		}
		if p.Namespace != "team-b" || len(p.Spec.Rules) != 2 {
			t.Errorf("watched %+v", p)
		}
		return
	}
	t.Error("the watch has ended")
}
