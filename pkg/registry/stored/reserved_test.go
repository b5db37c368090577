// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

const (
	reservedName = `metadata.name: Invalid value: "x.static.k8s.io": names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be managed via the API`
	reservedBind = `spec.policyName: Invalid value: "y.static.k8s.io": names ending with ".static.k8s.io" are those of bootstrap policies, which only bindings in their directory bind: put this binding there, or name a stored policy`
)

// TestReservedNames: what is new must not be like a bootstrap policy; what is stored
// can be written, and so deleted, whatever its name is.
func TestReservedNames(t *testing.T) {
	policyNamed := func(name string) runtime.Object {
		p := policyWith(1, "true", 0, "a")
		p.Name = name
		p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{"*"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
			},
		}}}
		fail, equivalent := admissionregistrationv1.Fail, admissionregistrationv1.Equivalent
		p.Spec.FailurePolicy, p.Spec.MatchConstraints.MatchPolicy = &fail, &equivalent
		p.Spec.MatchConstraints.NamespaceSelector, p.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
		p.ResourceVersion = "1"
		return p
	}
	bindingNamed := func(name, target string) runtime.Object {
		b := bindingWith(1, target)
		b.Name, b.ResourceVersion = name, "1"
		b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
		return b
	}
	tests := []struct {
		name     string
		old, obj runtime.Object // old is nil on create
		want     []string
		warned   bool
	}{
		{name: "create a policy", obj: policyNamed("x.static.k8s.io"), want: []string{reservedName}},
		{name: "create a policy with another name", obj: policyNamed("static.k8s.io")},
		{name: "create a binding", obj: bindingNamed("x.static.k8s.io", "p"), want: []string{reservedName}},
		{name: "create a binding of a bootstrap policy", obj: bindingNamed("b", "y.static.k8s.io"), want: []string{reservedBind}},
		{name: "create both", obj: bindingNamed("x.static.k8s.io", "y.static.k8s.io"), want: []string{reservedName, reservedBind}},
		{name: "create a binding", obj: bindingNamed("b", "p")},
		{name: "update a policy", old: policyNamed("x.static.k8s.io"), obj: policyNamed("x.static.k8s.io"), warned: true},
		{name: "update a binding", old: bindingNamed("x.static.k8s.io", "p"), obj: bindingNamed("x.static.k8s.io", "q"), warned: true},
		{name: "update a binding to a bootstrap policy", old: bindingNamed("b", "p"), obj: bindingNamed("b", "y.static.k8s.io"), want: []string{reservedBind}},
		{name: "update a binding that has named it", old: bindingNamed("b", "y.static.k8s.io"), obj: bindingNamed("b", "y.static.k8s.io")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := strategy{kind: kindOf(t, test.obj)}
			var errs field.ErrorList
			var warnings []string
			if test.old == nil {
				errs, warnings = s.Validate(t.Context(), test.obj), s.WarningsOnCreate(t.Context(), test.obj)
			} else {
				errs, warnings = s.ValidateUpdate(t.Context(), test.obj, test.old), s.WarningsOnUpdate(t.Context(), test.obj, test.old)
			}
			if got, want := texts(errs), strings.Join(test.want, "\n"); got != want {
				t.Errorf("got faults:\n%s\nwant:\n%s", got, want)
			}
			if warned := len(warnings) == 1 && strings.HasPrefix(warnings[0], `metadata.name: names ending with ".static.k8s.io" are reserved`); warned != test.warned {
				t.Errorf("got warnings %q", warnings)
			}
		})
	}
}

// TestKindsOfBindings: a binding that does not say what it binds could bind what it
// must not.
func TestKindsOfBindings(t *testing.T) {
	for _, kind := range Kinds() {
		if isBinding := strings.HasSuffix(kind.Singular, "binding"); isBinding != (kind.Binds != nil) {
			t.Errorf("%s: Binds is set: %v", kind.Resource, kind.Binds != nil)
		}
	}
	if got := Binds(func(b *policy.ValidatingAdmissionPolicyBinding) string { return b.Spec.PolicyName })(&policy.ValidatingAdmissionPolicy{}); got != "" {
		t.Errorf("a policy binds %q", got)
	}
}

func texts(errs field.ErrorList) string {
	lines := make([]string, len(errs))
	for i, err := range errs {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}
