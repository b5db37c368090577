// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// fixable is a catalog with what is fixed by "policy=says" and "binding>policy".
type fixable struct {
	*catalog.Catalog
	t       *testing.T
	dialect *rules

	mu  sync.Mutex
	new []string // what there is something new to report of
}

func newFixable(t *testing.T) *fixable {
	c, dialect := known(t)
	f := &fixable{Catalog: c, t: t, dialect: dialect}
	c.Watch(func(id policy.ID) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.new = append(f.new, id.Kind+"/"+id.Name)
	})
	return f
}

// units are "name=says" for a policy and "name>policy" for a binding.
func (f *fixable) fix(units ...string) {
	f.t.Helper()
	var compiled []*policy.Unit
	for _, change := range f.changes(units...) {
		unit, errs := f.Compile(f.t.Context(), change.ID.Kind, change.Object)
		if len(errs) > 0 {
			f.t.Fatal(errs)
		}
		compiled = append(compiled, unit)
	}
	f.Fix(compiled)
}

func (f *fixable) changes(units ...string) []catalog.Change {
	f.t.Helper()
	var changes []catalog.Change
	for _, unit := range units {
		if name, said, ok := strings.Cut(unit, "="); ok {
			changes = append(changes, write(stored("Rule", name, said)))
		} else if name, to, ok := strings.Cut(unit, ">"); ok {
			changes = append(changes, write(stored("RuleBinding", name, to)))
		} else {
			f.t.Fatalf("what is %q?", unit)
		}
	}
	return changes
}

func (f *fixable) news() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	news := slices.Sorted(slices.Values(f.new))
	f.new = nil
	return strings.Join(slices.Compact(news), " ")
}

// inForce lists all policies in force with what they say and who binds them.
func (f *fixable) inForce() string {
	f.t.Helper()
	if f.Current() == nil {
		return "no set"
	}
	var lines []string
	for _, bound := range f.Current().All() {
		if bound.Policy == nil || len(bound.Bindings) == 0 {
			continue
		}
		line := fmt.Sprintf("%s=%v", bound.ID.Name, bound.Policy.Policy.Program.Evaluate(f.t.Context(), policy.Input{})[0].Message)
		for _, binding := range bound.Bindings {
			line += " " + binding.ID.Name
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

func TestFix(t *testing.T) {
	rule := func(name string) policy.ID { return policy.ID{Kind: "Rule", Name: name} }
	binding := func(name string) policy.ID { return policy.ID{Kind: "RuleBinding", Name: name} }
	type step struct {
		fix    []string // nil leaves what is fixed as it is
		write  []string
		delete []policy.ID
		want   string
		news   string
	}
	tests := []struct {
		name  string
		steps []step
	}{
		{name: "with the first set and not before", steps: []step{
			{fix: []string{"f=fixed", "fb>f"}, want: "no set"},
			{write: []string{"s=stored", "sb>s"}, want: "f=fixed fb, s=stored sb", news: "Rule/f Rule/s RuleBinding/fb RuleBinding/sb"},
		}},
		{name: "a stored object never wins", steps: []step{
			{write: []string{"f=stored", "fb>f", "sb>f", "other=o", "ob>other"}, want: "f=stored fb sb, other=o ob", news: "Rule/f Rule/other RuleBinding/fb RuleBinding/ob RuleBinding/sb"},
			{fix: []string{"f=fixed", "fb>f"}, want: "f=fixed fb, other=o ob", news: "Rule/f RuleBinding/fb RuleBinding/sb"},
			{write: []string{"f=again", "fb>other", "sb>f"}, want: "f=fixed fb, other=o ob", news: "Rule/f Rule/other RuleBinding/fb"},
			{delete: []policy.ID{rule("f"), binding("fb")}, want: "f=fixed fb, other=o ob", news: "Rule/f Rule/other RuleBinding/fb"},
			{write: []string{"f=back"}, want: "f=fixed fb, other=o ob", news: "Rule/f"},
			{fix: []string{}, want: "f=back sb, other=o ob", news: "Rule/f RuleBinding/fb RuleBinding/sb"},
		}},
		{name: "a stored binding that is written later", steps: []step{
			{fix: []string{"f=fixed"}, want: "no set"},
			{write: []string{"sb>f", "s=stored", "tb>s"}, want: "s=stored tb", news: "Rule/f Rule/s RuleBinding/sb RuleBinding/tb"},
			{write: []string{"tb>f"}, want: "", news: "Rule/f Rule/s RuleBinding/tb"},
			{write: []string{"sb>s"}, want: "s=stored sb", news: "Rule/f Rule/s RuleBinding/sb"},
		}},
		{name: "replaced by others", steps: []step{
			{write: []string{"g=stored", "gb>g"}, want: "g=stored gb", news: "Rule/g RuleBinding/gb"},
			{fix: []string{"f=one", "fb>f"}, want: "f=one fb, g=stored gb", news: "Rule/f RuleBinding/fb"},
			{fix: []string{"g=two", "fb>g"}, want: "g=two fb", news: "Rule/f Rule/g RuleBinding/fb RuleBinding/gb"},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixable(t)
			for i, step := range test.steps {
				if step.fix != nil {
					f.fix(step.fix...)
				}
				changes := f.changes(step.write...)
				for _, id := range step.delete {
					changes = append(changes, catalog.Change{ID: id})
				}
				if len(changes) > 0 {
					apply(t, f.Catalog, changes...)
				}
				if got := f.inForce(); got != step.want {
					t.Errorf("step %d: %q in force, want %q", i, got, step.want)
				}
				if got := f.news(); got != step.news {
					t.Errorf("step %d: told of %q, want %q", i, got, step.news)
				}
			}
		})
	}
}

// TestFixedReports: what is fixed is not reported as stored, and what is stored in
// its place is, with the reason why it has no effect.
func TestFixedReports(t *testing.T) {
	f := newFixable(t)
	id := policy.ID{Kind: "Rule", Name: "f"}
	f.fix("f=fixed", "fb>f")
	if _, ok := f.Fixed(id); ok {
		t.Error("something is reported before there is a set")
	}
	apply(t, f.Catalog)
	if report, ok := f.Fixed(id); !ok || report.Binding {
		t.Errorf("the policy is reported as %+v, %v", report, ok)
	}
	if report, ok := f.Fixed(policy.ID{Kind: "RuleBinding", Name: "fb"}); !ok || !report.Binding {
		t.Errorf("the binding is reported as %+v, %v", report, ok)
	}
	if report, ok := f.Report(id); ok {
		t.Errorf("what is fixed is reported as stored: %+v", report)
	}
	apply(t, f.Catalog, f.changes("f=stored")...)
	if report, ok := f.Report(id); !ok || !report.Displaced {
		t.Errorf("what is stored is reported as %+v, %v", report, ok)
	}
	f.fix()
	if report, ok := f.Report(id); !ok || report.Displaced {
		t.Errorf("without what was fixed, it is reported as %+v, %v", report, ok)
	}
	if _, ok := f.Fixed(id); ok {
		t.Error("what is fixed no more is reported")
	}
}

// TestLostBindingsLeaveFixedPolicies: nobody knows what a damaged binding names, but
// it was no fixed policy.
func TestLostBindingsLeaveFixedPolicies(t *testing.T) {
	f := newFixable(t)
	f.fix("f=fixed", "unbound=fixed", "fb>f")
	damaged := write(stored("RuleBinding", "lost", ""), errors.New("damaged"))
	apply(t, f.Catalog, append(f.changes("s=stored", "unbound=stored"), damaged)...)
	if got, want := f.inForce(), "f=fixed fb, s=stored lost"; got != want {
		t.Errorf("%q in force, want %q", got, want)
	}
	f.fix()
	if got, want := f.inForce(), "s=stored lost, unbound=stored lost"; got != want {
		t.Errorf("%q in force when nothing is fixed, want %q", got, want)
	}
}
