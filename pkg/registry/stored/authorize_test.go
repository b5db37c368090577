// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// TestAuthorize: a writer is checked once the object is known to be valid, and
// never for a status. The old object counts only where all of it is known.
func TestAuthorize(t *testing.T) {
	kind := validatingAdmissionPolicies()
	damaged, _ := newSalvager(t, kind).read(t, "p", change(wholePolicy, "v1alpha1", "v9"))
	valid := func(expression string) *policy.ValidatingAdmissionPolicy {
		p := policyWith(1, expression, 0, "")
		p.UID, p.ResourceVersion = "u", "1"
		fail := admissionregistrationv1.Fail
		p.Spec.FailurePolicy = &fail
		all, equivalent := admissionregistrationv1.AllScopes, admissionregistrationv1.Equivalent
		p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
			MatchPolicy: &equivalent, NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: &all},
			}}},
		}
		return p
	}
	obj, old := valid("true"), valid("1 == 1")
	repaired := valid("true")
	repaired.ResourceVersion = "9"

	var asked []*policy.ValidatingAdmissionPolicy
	kind.Authorize = Authorization(func(_ context.Context, obj, old *policy.ValidatingAdmissionPolicy) field.ErrorList {
		asked = []*policy.ValidatingAdmissionPolicy{obj, old}
		return field.ErrorList{field.Forbidden(field.NewPath("spec"), "you may not")}
	})
	writes := strategy{kind: kind}
	tests := []struct {
		name  string
		write func() field.ErrorList
		asked []*policy.ValidatingAdmissionPolicy
		want  string
	}{
		{
			"create", func() field.ErrorList { return writes.Validate(t.Context(), obj) },
			[]*policy.ValidatingAdmissionPolicy{obj, nil},
			"spec: Forbidden: you may not",
		},
		{
			"update", func() field.ErrorList { return writes.ValidateUpdate(t.Context(), obj, old) },
			[]*policy.ValidatingAdmissionPolicy{obj, old},
			"spec: Forbidden: you may not",
		},
		{
			"repair", func() field.ErrorList { return writes.ValidateUpdate(by(t, "update"), repaired, damaged) },
			[]*policy.ValidatingAdmissionPolicy{repaired, nil},
			"spec: Forbidden: you may not",
		},
		{
			"no repair", func() field.ErrorList { return writes.ValidateUpdate(by(t, "patch"), repaired, damaged) },
			nil, refuseDamage(Damage(damaged)).ToAggregate().Error(),
		},
		{
			"create of an invalid object", func() field.ErrorList { return writes.Validate(t.Context(), valid(" ")) },
			nil, "spec.validations[0].expression: Required value: expression is not specified",
		},
		{
			"update to an invalid object", func() field.ErrorList { return writes.ValidateUpdate(t.Context(), valid(" "), old) },
			nil, "spec.validations[0].expression: Required value: expression is not specified",
		},
		{
			"status", func() field.ErrorList { return statusStrategy{writes}.ValidateUpdate(t.Context(), obj, old) },
			nil, "",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			asked = nil
			got := ""
			if errs := test.write(); len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if len(asked) != len(test.asked) || len(asked) > 0 && (asked[0] != test.asked[0] || asked[1] != test.asked[1]) {
				t.Errorf("asked about %v, want %v", asked, test.asked)
			}
		})
	}
}

// TestAuthorizeFailsClosed: what cannot be told of is refused.
func TestAuthorizeFailsClosed(t *testing.T) {
	authorize := Authorization(func(context.Context, *policy.ValidatingAdmissionPolicy, *policy.ValidatingAdmissionPolicy) field.ErrorList {
		return nil
	})
	own, foreign := runtime.Object(policyWith(1, "true", 0, "")), runtime.Object(bindingWith(1, "p"))
	for name, test := range map[string]struct {
		obj, old runtime.Object
		refused  bool
	}{
		"a new object":         {obj: own},
		"an object":            {obj: own, old: own},
		"a foreign object":     {obj: foreign, refused: true},
		"a foreign old object": {obj: own, old: foreign, refused: true},
	} {
		if errs := authorize(t.Context(), test.obj, test.old); (len(errs) > 0) != test.refused {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
