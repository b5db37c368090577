// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

func policyUnit(name string, needsBinding bool) *policy.Unit {
	return &policy.Unit{
		ID:     policy.ID{Kind: "Policy", Name: name},
		Policy: &policy.Policy{Criteria: match.Compile(nil), NeedsBinding: needsBinding},
	}
}

func bindingUnit(name, target string) *policy.Unit {
	return &policy.Unit{
		ID:      policy.ID{Kind: "Binding", Name: name},
		Binding: &policy.Binding{Policy: policy.ID{Kind: "Policy", Name: target}, Criteria: match.Compile(nil)},
	}
}

// inForce lists what judges a request, as policy(binding binding).
func inForce(t *testing.T, set *policy.Set) string {
	t.Helper()
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	req := request.New(request.Fields{
		Name: "a", Namespace: "default", Operation: admission.Create,
		Kind:     schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
	})
	var list []string
	for _, bound := range set.Candidates(match.NewSubject(req, view), nil) {
		var bindings []string
		for _, binding := range bound.Bindings {
			bindings = append(bindings, binding.ID.Name)
		}
		list = append(list, bound.Policy.ID.Name+"("+strings.Join(bindings, " ")+")")
	}
	if set.Len() != len(list) {
		t.Errorf("Len is %d, want %d", set.Len(), len(list))
	}
	return strings.Join(list, " ")
}

func TestEdit(t *testing.T) {
	set := &policy.Set{}
	policyID := func(name string) policy.ID { return policy.ID{Kind: "Policy", Name: name} }
	bindingID := func(name string) policy.ID { return policy.ID{Kind: "Binding", Name: name} }
	for _, step := range []struct {
		name   string
		remove []policy.ID
		put    []*policy.Unit
		want   string
	}{
		{name: "nothing"},
		{name: "a policy without a binding", put: []*policy.Unit{policyUnit("p", true)}},
		{name: "bindings, one of them to nothing", put: []*policy.Unit{bindingUnit("y", "p"), bindingUnit("x", "p"), bindingUnit("z", "q")}, want: "p(x y)"},
		{name: "the policy that was missing", put: []*policy.Unit{policyUnit("q", true)}, want: "p(x y) q(z)"},
		{name: "a policy that needs none", put: []*policy.Unit{policyUnit("a", false)}, want: "a() p(x y) q(z)"},
		{name: "a binding to another policy", put: []*policy.Unit{bindingUnit("x", "q")}, want: "a() p(y) q(x z)"},
		{name: "the same binding again", put: []*policy.Unit{bindingUnit("x", "q")}, want: "a() p(y) q(x z)"},
		{name: "a policy again", put: []*policy.Unit{policyUnit("q", true)}, want: "a() p(y) q(x z)"},
		{name: "a binding goes", remove: []policy.ID{bindingID("z")}, want: "a() p(y) q(x)"},
		{name: "a policy goes, its binding stays", remove: []policy.ID{policyID("q")}, want: "a() p(y)"},
		{name: "what is not there goes", remove: []policy.ID{policyID("q"), bindingID("none")}, want: "a() p(y)"},
		{name: "the policy comes back", put: []*policy.Unit{policyUnit("q", true)}, want: "a() p(y) q(x)"},
		{name: "all go", remove: []policy.ID{policyID("a"), policyID("p"), policyID("q"), bindingID("x"), bindingID("y")}},
	} {
		before, was := set, inForce(t, set)
		set = set.Edit(step.remove, step.put)
		if got := inForce(t, set); got != step.want {
			t.Errorf("%s: %q in force, want %q", step.name, got, step.want)
		}
		if now := inForce(t, before); now != was {
			t.Errorf("%s: the set before was changed from %q to %q", step.name, was, now)
		}
	}
}

// TestOrigins: what requests share says of each binding what the binding and the
// policy say, and follows an edit of either.
func TestOrigins(t *testing.T) {
	p, b1, b2 := policyUnit("p", true), bindingUnit("b1", "p"), bindingUnit("b2", "p")
	b2.Binding.Actions = []verdict.Action{verdict.Warn}
	set := (&policy.Set{}).Edit(nil, []*policy.Unit{p, b1, b2})
	origins := func(set *policy.Set) []verdict.Origin { return set.All()[0].Origins() }
	want := []verdict.Origin{
		{Policy: p.ID},
		{Policy: p.ID, Binding: "b1"},
		{Policy: p.ID, Binding: "b2", Actions: []verdict.Action{verdict.Warn}},
	}
	if diff := cmp.Diff(want, origins(set)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if first, second := origins(set), origins(set); &first[0] != &second[0] {
		t.Error("two requests have origins of their own")
	}
	ignoring := policyUnit("p", true)
	ignoring.Policy.OnError = verdict.Ignore
	edited := set.Edit([]policy.ID{b1.ID}, []*policy.Unit{ignoring})
	if diff := cmp.Diff([]verdict.Origin{
		{Policy: p.ID, OnError: verdict.Ignore},
		{Policy: p.ID, Binding: "b2", OnError: verdict.Ignore, Actions: []verdict.Action{verdict.Warn}},
	}, origins(edited)); diff != "" {
		t.Errorf("edited (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, origins(set)); diff != "" {
		t.Errorf("the set that was not edited (-want +got):\n%s", diff)
	}
}

// TestAfter: what comes after a policy comes after it in the order of judgement, whether
// it is among the others or not.
func TestAfter(t *testing.T) {
	ids := []policy.ID{{Kind: "A", Name: "z"}, {Kind: "B", Name: "c"}, {Kind: "B", Namespace: "n", Name: "a"}, {Kind: "B", Namespace: "n", Name: "b"}}
	var bounds []*policy.Bound
	for _, id := range ids {
		bounds = append(bounds, &policy.Bound{ID: id})
	}
	for i, id := range ids {
		if got := policy.After(id, bounds); len(got) != len(ids)-1-i {
			t.Errorf("%d come after %v, want %d", len(got), id, len(ids)-1-i)
		}
		without := append(slices.Clone(bounds[:i]), bounds[i+1:]...)
		if got := policy.After(id, without); len(got) != len(ids)-1-i {
			t.Errorf("%d of the others come after %v, want %d", len(got), id, len(ids)-1-i)
		}
	}
}
