// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// TestInternParams: equal params are the same, others are not, and none changes.
func TestInternParams(t *testing.T) {
	selector := func(app string) labels.Selector { return labels.SelectorFromSet(labels.Set{"app": app}) }
	var interner policy.Interner
	interned := func(p policy.Params) *policy.Params {
		unit := bindingUnit("b", "p")
		unit.Binding.Params = &p
		got := interner.Unit(unit)
		if unit.Binding.Params != &p || got == unit || got.ID != unit.ID || !reflect.DeepEqual(*got.Binding.Params, p) {
			t.Errorf("got %+v of %+v", got, unit)
		}
		return got.Binding.Params
	}
	var kept []*policy.Params // what nobody keeps is forgotten
	for i, test := range []struct {
		params policy.Params
		shared bool
	}{
		{policy.Params{Name: "a"}, true},
		{policy.Params{Name: "b"}, true},
		{policy.Params{Name: "a", Namespace: "n"}, true},
		{policy.Params{Name: "a", AllowAbsent: true}, true},
		{policy.Params{Selector: selector("a")}, true},
		{policy.Params{Selector: selector("b")}, true},
		{policy.Params{Selector: selector("a"), Namespace: "n"}, true},
		{policy.Params{Selector: labels.Everything()}, true},
		{policy.Params{Selector: labels.Nothing()}, false},
		{policy.Params{}, false},
		{policy.Params{Name: "a", Err: errors.New("unusable")}, false},
	} {
		first := interned(test.params)
		if again := interned(test.params); (again == first) != test.shared {
			t.Errorf("params %d: shared %v, want %v", i, again == first, test.shared)
		}
		if other := slices.Index(kept, first); other >= 0 {
			t.Errorf("params %d are the same as %d", i, other)
		}
		kept = append(kept, first)
	}
	runtime.KeepAlive(kept)
}

// TestInternKeepsWhatItDoesNotKnow: units of all sorts do as before.
func TestInternKeepsWhatItDoesNotKnow(t *testing.T) {
	var interner policy.Interner
	if got := interner.Unit(nil); got != nil {
		t.Errorf("got %+v of nothing", got)
	}
	p := policyUnit("p", true)
	if got := interner.Unit(p); got.ID != p.ID || !reflect.DeepEqual(got.Policy, p.Policy) || got == p {
		t.Errorf("got %+v, want a copy of %+v", got, p)
	}
	if got := interner.Unit(&policy.Unit{Policy: &policy.Policy{}}); got.Policy.Criteria != nil {
		t.Errorf("got criteria %+v of none", got.Policy.Criteria)
	}
}
