// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testCreateAndGet(t *testing.T, a *api) {
	p := newPolicy("replicas")
	p.Status.ObservedGeneration = 9
	created := a.createPolicy(t, p)
	if created.UID == "" || created.ResourceVersion == "" || created.CreationTimestamp.IsZero() {
		t.Errorf("metadata is not filled in: %+v", created.ObjectMeta)
	}
	if created.Generation != 1 {
		t.Errorf("generation %d, want 1", created.Generation)
	}
	if created.Status.ObservedGeneration != 0 {
		t.Errorf("status of the user is kept: %+v", created.Status)
	}
	match := created.Spec.MatchConstraints
	if created.Spec.FailurePolicy == nil || *created.Spec.FailurePolicy != admissionregistrationv1.Fail ||
		match.MatchPolicy == nil || *match.MatchPolicy != admissionregistrationv1.Equivalent ||
		match.NamespaceSelector == nil || match.ObjectSelector == nil ||
		match.ResourceRules[0].Scope == nil || *match.ResourceRules[0].Scope != admissionregistrationv1.AllScopes {
		t.Errorf("defaults are not filled in: %+v", created.Spec)
	}
	if got := a.getPolicy(t, "replicas"); !apiequality.Semantic.DeepEqual(got, created) {
		t.Errorf("got %+v, created %+v", got, created)
	}
	_, err := a.policies().Get(t.Context(), "absent", metav1.GetOptions{})
	wantReason(t, err, metav1.StatusReasonNotFound)
}

func testCreateRefused(t *testing.T, a *api) {
	a.createPolicy(t, newPolicy("taken"))
	_, err := a.policies().Create(t.Context(), newPolicy("taken"), metav1.CreateOptions{})
	wantReason(t, err, metav1.StatusReasonAlreadyExists)

	empty := newPolicy("empty")
	empty.Spec.Validations = nil
	empty.Spec.MatchConstraints = nil
	_, err = a.policies().Create(t.Context(), empty, metav1.CreateOptions{})
	wantReason(t, err, metav1.StatusReasonInvalid)
	for _, path := range []string{"spec.matchConstraints", "spec.validations"} {
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("error does not name %s: %v", path, err)
		}
	}

	generated := newPolicy("")
	generated.GenerateName = "made-"
	if p := a.createPolicy(t, generated); !strings.HasPrefix(p.Name, "made-") || p.Name == "made-" {
		t.Errorf("generated name %q", p.Name)
	}
}

func testBindings(t *testing.T, a *api) {
	created, err := a.bindings().Create(t.Context(), newBinding("b", "p"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Spec.PolicyName = "q"
	updated, err := a.bindings().Update(t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Generation != 2 || updated.Spec.PolicyName != "q" {
		t.Errorf("updated binding is %+v", updated)
	}
	if got := a.do(t, request{method: "GET", path: groupPath + "/validatingadmissionpolicybindings/b/status"}); got.code != 404 {
		t.Errorf("a binding has a status: %d", got.code)
	}
}

func testUpdateConflict(t *testing.T, a *api) {
	first := a.createPolicy(t, newPolicy("p"))
	second := first.DeepCopy()
	first.Spec.Validations[0].Message = "first"
	if _, err := a.policies().Update(t.Context(), first, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	second.Spec.Validations[0].Message = "second"
	_, err := a.policies().Update(t.Context(), second, metav1.UpdateOptions{})
	wantReason(t, err, metav1.StatusReasonConflict)

	second.ResourceVersion = ""
	_, err = a.policies().Update(t.Context(), second, metav1.UpdateOptions{})
	wantReason(t, err, metav1.StatusReasonInvalid)

	absent := newPolicy("absent")
	absent.ResourceVersion = first.ResourceVersion
	_, err = a.policies().Update(t.Context(), absent, metav1.UpdateOptions{})
	wantReason(t, err, metav1.StatusReasonNotFound)
	if got := a.getPolicy(t, "p").Spec.Validations[0].Message; got != "first" {
		t.Errorf("message %q, want that of the first writer", got)
	}
}

func testGeneration(t *testing.T, a *api) {
	p := a.createPolicy(t, newPolicy("p"))
	p.Labels = map[string]string{"a": "b"}
	p, err := a.policies().Update(t.Context(), p, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Generation != 1 {
		t.Errorf("generation %d after a change of labels, want 1", p.Generation)
	}
	p.Spec.Validations[0].Message = "changed"
	p, err = a.policies().Update(t.Context(), p, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Generation != 2 {
		t.Errorf("generation %d after a change of the spec, want 2", p.Generation)
	}
}

func testStatus(t *testing.T, a *api) {
	created := a.createPolicy(t, newPolicy("p"))

	write := created.DeepCopy()
	write.Status.ObservedGeneration = 1
	write.Spec.Validations[0].Message = "changed"
	write.Labels = map[string]string{"a": "b"}
	updated, err := a.policies().UpdateStatus(t.Context(), write, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Status.ObservedGeneration != 1 {
		t.Errorf("status is %+v", updated.Status)
	}
	if updated.Generation != 1 || updated.Labels != nil || updated.Spec.Validations[0].Message != "too many" {
		t.Errorf("a write of the status changed more: %+v", updated)
	}

	updated.Status.ObservedGeneration = 7
	updated.Spec.Validations[0].Message = "changed"
	updated, err = a.policies().Update(t.Context(), updated, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Status.ObservedGeneration != 1 || updated.Spec.Validations[0].Message != "changed" {
		t.Errorf("a write of the spec changed the status: %+v", updated)
	}

	if got := a.do(t, request{method: "GET", path: policiesPath + "/p/status"}); got.code != 200 {
		t.Errorf("GET of the status answers %d: %s", got.code, got.body)
	}
	for _, method := range []string{"POST", "DELETE"} {
		if got := a.do(t, request{method: method, path: policiesPath + "/p/status"}); got.code != 405 {
			t.Errorf("%s of the status answers %d, want 405", method, got.code)
		}
	}
}

func testDelete(t *testing.T, a *api) {
	p := a.createPolicy(t, newPolicy("p"))
	other := p.UID + "x"
	err := a.policies().Delete(t.Context(), "p", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	wantReason(t, err, metav1.StatusReasonConflict)
	if err := a.policies().Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err = a.policies().Delete(t.Context(), "p", metav1.DeleteOptions{})
	wantReason(t, err, metav1.StatusReasonNotFound)

	// A finalizer holds the object until it is taken away.
	held := newPolicy("held")
	held.Finalizers = []string{"example.com/hold"}
	a.createPolicy(t, held)
	if err := a.policies().Delete(t.Context(), "held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	held = a.getPolicy(t, "held")
	if held.DeletionTimestamp == nil {
		t.Error("object is not marked as deleted")
	}
	held.Finalizers = nil
	if _, err := a.policies().Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = a.policies().Get(t.Context(), "held", metav1.GetOptions{})
	wantReason(t, err, metav1.StatusReasonNotFound)

	// Nothing collects garbage beside a standalone server, so no way of deleting
	// may wait for that.
	for _, propagation := range []metav1.DeletionPropagation{
		metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan,
	} {
		a.createPolicy(t, newPolicy("p"))
		if err := a.policies().Delete(t.Context(), "p", metav1.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
			t.Fatal(err)
		}
		_, err = a.policies().Get(t.Context(), "p", metav1.GetOptions{})
		wantReason(t, err, metav1.StatusReasonNotFound)
	}
}

func testDeleteCollection(t *testing.T, a *api) {
	for name, team := range map[string]string{"a1": "a", "a2": "a", "b1": "b"} {
		a.createPolicy(t, labelledPolicy(name, team))
	}
	if err := a.policies().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "team=a"}); err != nil {
		t.Fatal(err)
	}
	if got := a.policyNames(t, metav1.ListOptions{}); !slices.Equal(got, []string{"b1"}) {
		t.Errorf("left are %v, want b1", got)
	}
}
