// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestMutatingDoors asks the doors of the mutate phase on one server. Each test has
// namespaces of its own.
func TestMutatingDoors(t *testing.T) {
	a := newAPI(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *api)
	}{
		{"Patches", testDoorPatches},
		{"Failures", testDoorFailures},
		{"Deletes", testDoorDeletes},
		{"Namespaced", testDoorNamespaced},
		{"Order", testDoorOrder},
		{"Rules", testDoorRules},
		{"Changes", testDoorChanges},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, a) })
	}
}

// testDoorPatches: a patch leads to the mutated object, and there is none when nothing
// changes.
func testDoorPatches(t *testing.T, a *api) {
	a.storeRules(t, map[string]string{"patches": mutateRule("patches", `
- {op: add, path: /metadata/labels/team, value: "{{ request.object.data.team || 'none' }}"}
- {op: add, path: /data/a~1b, value: "{\"n\": 1}"}
- {op: remove, path: /data/gone}
`)})
	const want = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"patches","labels":{"team":"x"}},"data":{"team":"x","a/b":"{\"n\": 1}"}}`
	tests := []struct {
		name, object, want string
		operation          admissionv1.Operation
	}{
		{
			name: "from nothing", operation: admissionv1.Create,
			object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"patches"}}`,
			want:   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"patches","labels":{"team":"none"}},"data":{"a/b":"{\"n\": 1}"}}`,
		},
		{
			name: "beside others", operation: admissionv1.Create,
			object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"patches","labels":{"team":"y"}},"data":{"team":"x","gone":"z"}}`,
			want:   want,
		},
		{
			name: "in an update", operation: admissionv1.Update,
			object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"patches"},"data":{"team":"x"}}`,
			want:   want,
		},
		{name: "already there", operation: admissionv1.Create, object: want, want: want},
		{name: "elsewhere", operation: admissionv1.Create, object: configMapOf(t, "elsewhere", "c", ""), want: configMapOf(t, "elsewhere", "c", "")},
	}
	for _, test := range tests {
		for _, path := range mutating.paths() {
			t.Run(test.name+path, func(t *testing.T) {
				review := mutateReview(t, test.operation, test.object)
				review.Request.UID = types.UID("uid of " + test.name)
				response := a.changes(t, path, review)
				wantObject(t, patched(t, response, test.object), test.want)
				if none := test.object == test.want; none != (response.Patch == nil) {
					t.Errorf("patch %s, want none: %v", response.Patch, none)
				}
			})
		}
		for _, path := range validating.paths() {
			if response := a.changes(t, path, mutateReview(t, test.operation, test.object)); !response.Allowed || response.Patch != nil {
				t.Errorf("%s of %s answers %+v, want that it is admitted as it is", path, test.name, response)
			}
		}
	}
}

// testDoorFailures: a rule that fails denies, or changes nothing.
func testDoorFailures(t *testing.T, a *api) {
	const fails = `- {op: replace, path: /data/absent, value: a}`
	rules := func(namespace, settings string) string {
		return mutateRule(namespace, labelPatch("first", "1")) + nextRule("fails", namespace, "", fails) +
			nextRule("last", namespace, "", labelPatch("last", "3")) + settings
	}
	a.storeRules(t, map[string]string{
		"fails":   rules("fails", ""),
		"ignored": rules("ignored", "failurePolicy: Ignore\n"),
		// The newer field wins, and an error of the first does not make those of others count.
		"ignored-too": mutateRule("ignored", fails) + "webhookConfiguration: {failurePolicy: Ignore}\n",
	})
	const denial = `ClusterPolicy 'fails' denied request: rule "fails": patchesJson6902: operation 0, replace /data/absent: the parent of this path is missing`
	for _, path := range mutating.paths() {
		response := a.changes(t, path, mutateReview(t, admissionv1.Create, configMapOf(t, "fails", "c", "")))
		if response.Allowed || response.Patch != nil || response.PatchType != nil || response.Result == nil {
			t.Fatalf("%s: got %+v, want a denial without a patch", path, response)
		}
		if response.Result.Message != denial || response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid {
			t.Errorf("%s: got %+v, want the message\n%s", path, response.Result, denial)
		}
		object := configMapOf(t, "ignored", "c", "")
		response = a.changes(t, path, mutateReview(t, admissionv1.Create, object))
		wantObject(t, patched(t, response, object), configMapOf(t, "ignored", "c", `first: "1", last: "3"`))
		if response.Result != nil || len(response.Warnings) != 0 {
			t.Errorf("%s: got %+v", path, response)
		}
	}
}

// testDoorDeletes: there is nothing to change, whatever the rule says of the old object.
func testDoorDeletes(t *testing.T, a *api) {
	a.storeRules(t, map[string]string{"deletes": mutateRule("deletes", `- {op: replace, path: /metadata/labels/a, value: "{{ request.oldObject.metadata.name }}"}`)})
	object := configMapOf(t, "deletes", "c", "a: b")
	for _, path := range mutating.paths() {
		response := a.changes(t, path, mutateReview(t, admissionv1.Delete, object))
		if !response.Allowed || response.Patch != nil || response.PatchType != nil {
			t.Errorf("%s: got %+v, want that it is admitted", path, response)
		}
		updated := a.changes(t, path, mutateReview(t, admissionv1.Update, object))
		wantObject(t, patched(t, updated, object), configMapOf(t, "deletes", "c", "a: c"))
	}
}

// testDoorNamespaced: a Policy is about objects of its namespace, whatever its rules name.
func testDoorNamespaced(t *testing.T, a *api) {
	spec := "rules:\n" + nextRule("change", "", "kinds: [ConfigMap, Namespace]", labelPatch("by", "policy"))
	if _, err := a.policiesOf("home").Create(t.Context(), namespacedPolicy(t, "home", "namespaced", spec), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.awaitPatched(t, configMapOf(t, "home", "c", ""), configMapOf(t, "home", "c", "by: policy"))
	for _, path := range mutating.paths() {
		for _, namespace := range []string{"away", "home-2"} {
			object := configMapOf(t, namespace, "c", "")
			if response := a.changes(t, path, mutateReview(t, admissionv1.Create, object)); !response.Allowed || response.Patch != nil {
				t.Errorf("%s in %s: got %+v, want no change", path, namespace, response)
			}
		}
		// A Namespace is in none, although requests about it name itself.
		review := mutateReview(t, admissionv1.Create, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"home"}}`)
		review.Request.Kind.Kind, review.Request.Resource.Resource, review.Request.Namespace = "Namespace", "namespaces", "home"
		if response := a.changes(t, path, review); !response.Allowed || response.Patch != nil {
			t.Errorf("%s of a Namespace: got %+v, want no change", path, response)
		}
	}
}

// testDoorOrder: policies are applied in the order of their names, ClusterPolicies
// first, and each sees what the former have made of the object.
func testDoorOrder(t *testing.T, a *api) {
	note := func(who string) string {
		return `- {op: add, path: /data/seen, value: "{{ request.object.data.seen || '' }}` + who + `"}`
	}
	// Not stored in the order in which they are applied.
	for _, name := range []string{"order-c", "order-a", "order-b"} {
		a.createClusterPolicy(t, name, mutateRule("order", note(strings.TrimPrefix(name, "order-"))))
	}
	for _, name := range []string{"b", "a"} {
		spec := "rules:\n" + nextRule("change", "", "kinds: [ConfigMap]", note(strings.ToUpper(name)))
		if _, err := a.policiesOf("order").Create(t.Context(), namespacedPolicy(t, "order", name, spec), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"order"}}`
	const want = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"order"},"data":{"seen":"abcAB"}}`
	a.awaitPatched(t, object, want)
	for range 20 {
		wantObject(t, patched(t, a.changes(t, mutating.direct, mutateReview(t, admissionv1.Create, object)), object), want)
	}
}

// testDoorRules: rules are applied in their order, and with applyRules One no further
// than the first that changes the object.
func testDoorRules(t *testing.T, a *api) {
	rules := func(namespace string) string {
		return mutateRule(namespace, labelPatch("first", "1")) +
			nextRule("second", namespace, "selector: {matchLabels: {first: '1'}}", labelPatch("second", "2"))
	}
	a.storeRules(t, map[string]string{"rules-all": rules("rules-all"), "rules-one": rules("rules-one") + "applyRules: One\n"})
	for namespace, steps := range map[string][]string{
		"rules-all": {"", `first: "1", second: "2"`, `first: "1", second: "2"`},
		"rules-one": {"", `first: "1"`, `first: "1", second: "2"`, `first: "1", second: "2"`},
	} {
		for i, labels := range steps[:len(steps)-1] {
			object := configMapOf(t, namespace, "c", labels)
			got := patched(t, a.changes(t, mutating.direct, mutateReview(t, admissionv1.Create, object)), object)
			wantObject(t, got, configMapOf(t, namespace, "c", steps[i+1]))
		}
	}
}

// testDoorChanges: what is in force follows what is written.
func testDoorChanges(t *testing.T, a *api) {
	object := configMapOf(t, "changes", "c", "")
	a.storeRules(t, map[string]string{"changes": mutateRule("changes", labelPatch("v", "1"))})
	wantObject(t, patched(t, a.changes(t, mutating.direct, mutateReview(t, admissionv1.Create, object)), object), configMapOf(t, "changes", "c", `v: "1"`))
	p, err := a.clusterPolicies().Get(t.Context(), "changes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.Rules[0].Mutate.PatchesJSON6902 = labelPatch("v", "2")
	if _, err := a.clusterPolicies().Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.awaitRules(t, "changes", 2)
	wantObject(t, patched(t, a.changes(t, mutating.direct, mutateReview(t, admissionv1.Create, object)), object), configMapOf(t, "changes", "c", `v: "2"`))
	if err := a.clusterPolicies().Delete(t.Context(), "changes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.awaitPatched(t, object, object)
}
