// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"fmt"
	"math"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// installed returns a set of matching policies on Deployments and the rest on
// other resources, each with a binding, a match condition, a variable, two
// validations and a message.
func installed(t testing.TB, matching, all int) *policy.Set {
	t.Helper()
	dialect := cel.New()
	units := make([]*policy.Unit, 0, 2*all)
	var program policy.Program // compiled once for those that do not match: only their number counts
	unit := func(obj *policyapi.ValidatingAdmissionPolicy) *policy.Unit {
		if program == nil || len(units) < 2*matching {
			u := compiled(t, dialect, obj)
			program = u.Policy.Program
			return u
		}
		return &policy.Unit{
			ID:     policy.ID{Kind: "ValidatingAdmissionPolicy", Name: obj.Name},
			Policy: &policy.Policy{Criteria: match.Compile(obj.Spec.MatchConstraints), Program: program, NeedsBinding: true},
		}
	}
	for i := range all {
		spec := admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "c", Expression: "request.operation == 'CREATE'"}},
			Variables:       []admissionregistrationv1.Variable{{Name: "n", Expression: "object.spec.replicas"}},
			Validations: []admissionregistrationv1.Validation{
				{Expression: "variables.n <= 100", MessageExpression: "'replicas: ' + string(variables.n)"},
				{Expression: "object.metadata.name != 'forbidden'"},
			},
		}
		obj := stored(spec)
		obj.Name = fmt.Sprintf("p%05d", i)
		rule := &obj.Spec.MatchConstraints.ResourceRules[0].Rule
		rule.APIGroups, rule.APIVersions, rule.Resources = []string{"apps"}, []string{"v1"}, []string{"deployments"}
		if i >= matching {
			rule.Resources = []string{fmt.Sprintf("others%d", i%100)}
		}
		units = append(units, unit(obj), compiled(t, dialect, &policyapi.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: obj.Name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        obj.Name,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}))
	}
	return (&policy.Set{}).Edit(nil, units)
}

func compiled(t testing.TB, dialect *cel.Dialect, obj runtime.Object) *policy.Unit {
	t.Helper()
	unit, errs := dialect.Compile(t.Context(), obj)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return unit
}

// maxAllocations is well above what a request needs that 10 policies match, and far
// below what it needs when costs are counted or values made for each policy.
const maxAllocations = 100

// TestAllocationsDoNotGrow: what a request costs follows the policies that
// match, not those that are installed.
func TestAllocationsDoNotGrow(t *testing.T) {
	view := emptyCluster(t)
	allocations := func(all int) float64 {
		set := installed(t, 10, all)
		judging := chain.New(func() *policy.Set { return set }, clock.RealClock{})
		judge := func() {
			v, err := judging.Run(t.Context(), chain.Trial{Request: deployment(), View: view})
			if err != nil || !v.Allowed || len(v.Evaluations) != 20 {
				t.Fatalf("allowed %v with %d evaluations and error %v, want an admission with 20", v.Allowed, len(v.Evaluations), err)
			}
		}
		judge() // what is built once
		return testing.AllocsPerRun(100, judge)
	}
	few, many := allocations(10), allocations(1000)
	t.Logf("allocations of a request that 10 policies match: %.0f of 10 installed, %.0f of 1,000", few, many)
	// The pools of the CEL interpreter are emptied at random, by the race
	// detector above all; one allocation a policy would be 990 more.
	if math.Abs(many-few) > few/10 {
		t.Errorf("%.0f allocations with 10 installed and %.0f with 1,000, want the same", few, many)
	}
	if few > maxAllocations {
		t.Errorf("%.0f allocations, want no more than %d", few, maxAllocations)
	}
}

func BenchmarkTenMatching(b *testing.B) {
	view := emptyCluster(b)
	for _, all := range []int{10, 1000} {
		b.Run(fmt.Sprintf("of %d", all), func(b *testing.B) {
			set := installed(b, 10, all)
			judging := chain.New(func() *policy.Set { return set }, clock.RealClock{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := judging.Run(b.Context(), chain.Trial{Request: deployment(), View: view}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
