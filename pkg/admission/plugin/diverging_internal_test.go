// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// labelling is a program that sets the label x, and says what it conceals.
type labelling struct {
	value     func(in policy.Input) string
	concealed string
}

// Evaluate implements policy.Program.
func (l labelling) Evaluate(_ context.Context, in policy.Input) []verdict.Finding {
	value := l.value(in)
	if value == in.Request.Object.GetLabels()["x"] {
		return []verdict.Finding{{Kind: verdict.Skip}}
	}
	object := in.Request.Object.DeepCopy()
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["x"] = value
	object.SetLabels(labels)
	found := verdict.Finding{Kind: verdict.Mutated, Object: object}
	if in.Explain != nil {
		found.Trace = &verdict.Trace{Concealed: l.concealed}
	}
	return []verdict.Finding{found}
}

// TestDivergingOfWhatIsRandom: what follows from the request itself is another thing in
// the next one.
func TestDivergingOfWhatIsRandom(t *testing.T) {
	unit := stamp(t, "Early", "random", "x", "1", false)
	unit.Policy.Program = labelling{value: func(in policy.Input) string { return string(in.Request.UID) }}
	got, err := registered(t, unit).Try(t.Context(), chain.Trial{Request: create(configMap(nil)), View: empty(t), Explain: &policy.Explain{}})
	if err != nil || len(got.Diverging) != 1 || got.Diverging[0].Policy != unit.ID {
		t.Errorf("got %+v and error %v, want the policy", got.Diverging, err)
	}
}

// TestDivergingConceals: what a rule that comes to nothing at first takes from where the
// asker may not look is concealed, too.
func TestDivergingConceals(t *testing.T) {
	const data = "kanarienvogel"
	reads := stamp(t, "Early", "a", "x", "1", false)
	reads.Policy.Program = labelling{concealed: "a ConfigMap", value: func(in policy.Input) string {
		if in.Request.Object.GetLabels()["go"] == "" {
			return ""
		}
		return data
	}}
	r := registered(t, reads, stamp(t, "Early", "b", "go", "1", false))
	got, err := r.Try(t.Context(), chain.Trial{Request: create(configMap(nil)), View: empty(t), Explain: &policy.Explain{}})
	if err != nil || len(got.Diverging) != 1 || got.Diverging[0].Concealed != "a ConfigMap" {
		t.Errorf("got %+v and error %v, want what is concealed", got.Diverging, err)
	}
}

// TestConvergenceOfReplacedPolicies: what has made an object is asked again, and not what
// is stored by now.
func TestConvergenceOfReplacedPolicies(t *testing.T) {
	first := stamp(t, "Early", "first", "x", "1", false)
	set := (&policy.Set{}).Edit(nil, []*policy.Unit{first})
	r, err := NewRegistered([]policy.Dialect{dialecttest.Stamp{Kind: "Early"}, dialecttest.Stamp{Kind: "Late"}},
		chain.New(func() *policy.Set { return set }, clock.RealClock{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := NewConvergence(r, func(unit *policy.Unit, text string) { t.Errorf("%s: %s", unit.ID.Name, text) })
	if _, err := r.Mutate(t.Context(), create(configMap(nil)), empty(t)); err != nil {
		t.Fatal(err)
	}
	set = (&policy.Set{}).Edit(nil, []*policy.Unit{stamp(t, "Early", "a", "x", "0", false), first, stamp(t, "Late", "z", "x", "2", false)})
	next := <-c.waiting
	c.look(t.Context(), &next)
}

// TestConvergenceKeepsNoPolicy: a policy that is gone is gone from memory.
func TestConvergenceKeepsNoPolicy(t *testing.T) {
	r := registered(t)
	c := NewConvergence(r, func(*policy.Unit, string) {})
	kept := func() weak.Pointer[policy.Unit] {
		unit := stamp(t, "Early", "a", "x", "1", false)
		set := (&policy.Set{}).Edit(nil, []*policy.Unit{unit})
		if _, err := r.Mutate(t.Context(), create(configMap(nil)), empty(t)); err != nil {
			t.Fatal(err)
		}
		question, err := r.chain.Try(chain.Trial{Request: create(configMap(nil)), View: empty(t), Stored: set})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := r.mutate(t.Context(), question, create(configMap(nil)))
		if err != nil || !c.interesting(question, &answer) {
			t.Fatalf("of no interest: %+v, %v", answer, err)
		}
		return weak.Make(unit)
	}()
	runtime.GC()
	if kept.Value() != nil || len(c.looked) != 1 {
		t.Errorf("the policy is kept: %v, and %d are known", kept.Value(), len(c.looked))
	}
}

func TestPlaces(t *testing.T) {
	of := func(paths ...string) []patch.Operation {
		operations := make([]patch.Operation, len(paths))
		for i, path := range paths {
			operations[i].Path = path
		}
		return operations
	}
	changed := placesOf(of("/a/b", "/c/d/e", "/f"))
	for path, want := range map[string]bool{
		"/a/b": true, "/a": true, "/a/b/c": true, "/a/bc": false, "/a/c": false, "/c/d": true, "/c/d/f": false, "/c/d/e/f/g": true, "/f/g": true, "/fg": false, "/g": false,
	} {
		if got := changed.touchedBy(of("/x", path)); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}
