// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyadmissionregistrationv1 "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	applyv1alpha1 "github.com/portcullis-dev/portcullis/pkg/generated/applyconfiguration/policy/v1alpha1"
)

func testPatchTypes(t *testing.T, a *api) {
	tests := []struct {
		patchType types.PatchType
		patch     string
		names     []string // of the variables, which merge by name
	}{
		{types.JSONPatchType, `[{"op":"add","path":"/spec/variables/-","value":{"name":"c","expression":"3"}}]`, []string{"a", "b", "c"}},
		{types.MergePatchType, `{"spec":{"variables":[{"name":"c","expression":"3"}]}}`, []string{"c"}},
		{types.StrategicMergePatchType, `{"spec":{"variables":[{"name":"c","expression":"3"}]}}`, []string{"c", "a", "b"}},
		{types.StrategicMergePatchType, `{"spec":{"variables":[{"name":"a","$patch":"delete"}]}}`, []string{"b"}},
	}
	for _, test := range tests {
		t.Run(string(test.patchType), func(t *testing.T) {
			a.reset(t)
			p := newPolicy("p")
			p.Spec.Variables = []admissionregistrationv1.Variable{{Name: "a", Expression: "1"}, {Name: "b", Expression: "2"}}
			a.createPolicy(t, p)
			patched, err := a.policies().Patch(t.Context(), "p", test.patchType, []byte(test.patch), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, variable := range patched.Spec.Variables {
				names = append(names, variable.Name)
			}
			if !slices.Equal(names, test.names) {
				t.Errorf("variables %v, want %v", names, test.names)
			}
			if patched.Generation != 2 {
				t.Errorf("generation %d, want 2", patched.Generation)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		_, err := a.policies().Patch(t.Context(), "p", types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/name","value":"q"}]`), metav1.PatchOptions{})
		wantReason(t, err, metav1.StatusReasonInvalid)
		_, err = a.policies().Patch(t.Context(), "p", types.MergePatchType, []byte(`{"spec":{"validations":null}}`), metav1.PatchOptions{})
		wantReason(t, err, metav1.StatusReasonInvalid)
		_, err = a.policies().Patch(t.Context(), "p", types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"1"}}`), metav1.PatchOptions{})
		wantReason(t, err, metav1.StatusReasonConflict)
		_, err = a.policies().Patch(t.Context(), "absent", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		wantReason(t, err, metav1.StatusReasonNotFound)
		if got := a.do(t, request{method: "PATCH", path: policiesPath + "/p", contentType: "text/plain", body: []byte("x")}); got.code != 415 {
			t.Errorf("patch of an unknown type answers %d, want 415", got.code)
		}
	})
}

// applied is the part of a policy that one manager writes: a validation, and a
// failurePolicy when there is one.
func applied(expression, failurePolicy string) *applyv1alpha1.ValidatingAdmissionPolicyApplyConfiguration {
	rule := applyadmissionregistrationv1.NamedRuleWithOperations().
		WithOperations(admissionregistrationv1.Create).WithAPIGroups("apps").WithAPIVersions("v1").WithResources("deployments")
	spec := applyadmissionregistrationv1.ValidatingAdmissionPolicySpec().
		WithMatchConstraints(applyadmissionregistrationv1.MatchResources().WithResourceRules(rule)).
		WithValidations(applyadmissionregistrationv1.Validation().WithExpression(expression))
	if failurePolicy != "" {
		spec.WithFailurePolicy(admissionregistrationv1.FailurePolicyType(failurePolicy))
	}
	return applyv1alpha1.ValidatingAdmissionPolicy("p").WithSpec(spec)
}

func testApply(t *testing.T, a *api) {
	apply := func(manager string, force bool, c *applyv1alpha1.ValidatingAdmissionPolicyApplyConfiguration) (*v1alpha1.ValidatingAdmissionPolicy, error) {
		return a.policies().Apply(t.Context(), c, metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	p, err := apply("one", false, applied("true", "Ignore"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Generation != 1 || *p.Spec.FailurePolicy != admissionregistrationv1.Ignore {
		t.Errorf("created %+v", p)
	}
	if p, err = apply("one", false, applied("true", "Ignore")); err != nil || p.Generation != 1 {
		t.Errorf("applying the same again: generation %d, %v", p.Generation, err)
	}

	other := applyv1alpha1.ValidatingAdmissionPolicy("p").WithLabels(map[string]string{"by": "two"})
	if p, err = apply("two", false, other); err != nil {
		t.Fatal(err)
	}
	if owners := managers(p); !slices.Equal(owners, []string{"one", "two"}) || p.Labels["by"] != "two" {
		t.Errorf("managers %v, labels %v", owners, p.Labels)
	}

	other.WithSpec(applyadmissionregistrationv1.ValidatingAdmissionPolicySpec().WithFailurePolicy(admissionregistrationv1.Fail))
	_, err = apply("two", false, other)
	wantReason(t, err, metav1.StatusReasonConflict)
	if !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) || !strings.Contains(err.Error(), ".spec.failurePolicy") {
		t.Errorf("conflict does not name the field: %v", err)
	}
	if p, err = apply("two", true, other); err != nil || *p.Spec.FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("forced: %+v, %v", p, err)
	}

	// What a manager no longer applies goes, unless another manager has it.
	if p, err = apply("two", false, applyv1alpha1.ValidatingAdmissionPolicy("p")); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Labels["by"]; ok {
		t.Errorf("label of manager two is still there: %v", p.Labels)
	}
	if len(p.Spec.Validations) != 1 {
		t.Errorf("validations of manager one are gone: %+v", p.Spec)
	}
}

func testApplyStatus(t *testing.T, a *api) {
	a.createPolicy(t, newPolicy("p"))
	apply := func(name string) (*v1alpha1.ValidatingAdmissionPolicy, error) {
		body := `{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"` + name + `"},` +
			`"spec":{"failurePolicy":"Ignore"},"status":{"observedGeneration":1}}`
		return a.policies().Patch(t.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "checker"}, "status")
	}
	p, err := apply("p")
	if err != nil {
		t.Fatal(err)
	}
	if p.Status.ObservedGeneration != 1 || *p.Spec.FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("applied status: %+v", p)
	}
	for _, entry := range p.ManagedFields {
		if entry.Manager == "checker" && (entry.Subresource != "status" || strings.Contains(entry.FieldsV1.GetRawString(), "f:spec")) {
			t.Errorf("manager of the status owns %s of %q", entry.FieldsV1.GetRawString(), entry.Subresource)
		}
	}
	_, err = apply("absent")
	wantReason(t, err, metav1.StatusReasonNotFound)
}

func managers(p *v1alpha1.ValidatingAdmissionPolicy) []string {
	var names []string
	for _, entry := range p.ManagedFields {
		names = append(names, entry.Manager)
	}
	slices.Sort(names)
	return names
}
