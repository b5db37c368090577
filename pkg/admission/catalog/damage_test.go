// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// rules is a dialect of policies and bindings. It counts what it compiles.
type rules struct{ compiled atomic.Int64 }

func (*rules) Name() string    { return "rules" }
func (*rules) Kinds() []string { return []string{"Rule", "RuleBinding"} }

func (r *rules) Compile(_ context.Context, obj runtime.Object) (*policy.Unit, field.ErrorList) {
	r.compiled.Add(1)
	stored, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, nil
	}
	said, _, _ := unstructured.NestedString(stored.Object, "spec", "says")
	switch said {
	case "panic":
		panic("the dialect panics")
	case "nothing":
		return nil, field.ErrorList{field.Invalid(nil, said, "nothing")}
	}
	id := policy.ID{Kind: stored.GetKind(), Name: stored.GetName()}
	if stored.GetKind() == "RuleBinding" {
		return &policy.Unit{ID: id, Binding: &policy.Binding{Policy: policy.ID{Kind: "Rule", Name: said}, Criteria: match.Compile(nil)}}, nil
	}
	unit := &policy.Unit{ID: id, Policy: &policy.Policy{Criteria: match.Compile(nil), Program: says(said), NeedsBinding: true}}
	if said == "fault" {
		return unit, field.ErrorList{field.Invalid(field.NewPath("spec", "says"), said, "it is a fault")}
	}
	return unit, nil
}

type says string

func (s says) Evaluate(context.Context, policy.Input) []verdict.Finding {
	return []verdict.Finding{{Kind: verdict.Fail, Message: string(s)}}
}

func stored(kind, name, said string, extra ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rules.dev/v1", "kind": kind, "spec": map[string]any{"says": said}}}
	obj.SetName(name)
	obj.SetUID("u")
	obj.SetGeneration(1)
	for _, change := range extra {
		change(obj)
	}
	return obj
}

func write(obj *unstructured.Unstructured, damage ...error) catalog.Change {
	return catalog.Change{ID: policy.ID{Kind: obj.GetKind(), Name: obj.GetName()}, Object: obj, Damage: errors.Join(damage...)}
}

// known is a catalog that has seen its sources.
func known(t *testing.T) (*catalog.Catalog, *rules) {
	t.Helper()
	dialect := &rules{}
	c := catalog.New([]policy.Dialect{dialect})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	source := func(kind string) catalog.Source {
		_, informer := fakeSource(t)
		return catalog.Source{Kind: kind, Informer: informer, New: func() runtime.Object {
			return &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
		}}
	}
	if err := c.Run(ctx, []catalog.Source{source("Rule"), source("RuleBinding")}, same); err != nil {
		t.Fatal(err)
	}
	return c, dialect
}

func apply(t *testing.T, c *catalog.Catalog, changes ...catalog.Change) {
	t.Helper()
	if err := c.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
}

// judged is what a request meets, as policy/binding: finding.
func judged(t *testing.T, c *catalog.Catalog) string {
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
	for _, bound := range c.Current().Candidates(match.NewSubject(req, view), nil) {
		for _, binding := range bound.Bindings {
			for _, finding := range bound.Policy.Policy.Program.Evaluate(t.Context(), policy.Input{}) {
				kind := ""
				if finding.Kind == verdict.Misconfigured {
					kind = "misconfigured: "
				}
				list = append(list, bound.ID.Name+"/"+binding.ID.Name+": "+kind+finding.Message)
			}
		}
	}
	return strings.Join(list, ", ")
}

func TestCompilesOnlyWhatADialectSeesChanged(t *testing.T) {
	set := func(fields ...string) func(*unstructured.Unstructured) {
		return func(obj *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(obj.Object, "x", fields...); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name string
		obj  *unstructured.Unstructured
		want bool
	}{
		{"the same", stored("Rule", "a", "no"), false},
		{"another resourceVersion", stored("Rule", "a", "no", set("metadata", "resourceVersion")), false},
		{"managed fields", stored("Rule", "a", "no", func(obj *unstructured.Unstructured) {
			obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		}), false},
		{"a status", stored("Rule", "a", "no", set("status", "x")), false},
		{"another spec", stored("Rule", "a", "yes"), true},
		{"another generation", stored("Rule", "a", "no", func(obj *unstructured.Unstructured) { obj.SetGeneration(2) }), true},
		{"the same generation of another object", stored("Rule", "a", "no", func(obj *unstructured.Unstructured) { obj.SetUID("v") }), true},
		{"an annotation", stored("Rule", "a", "no", set("metadata", "annotations", "x")), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, dialect := known(t)
			apply(t, c, write(stored("Rule", "a", "no")))
			before, set := dialect.compiled.Load(), c.Current()
			notified := 0
			c.Watch(func(policy.ID) { notified++ })
			apply(t, c, write(test.obj))
			if compiled := dialect.compiled.Load() != before; compiled != test.want {
				t.Errorf("compiled again: %t, want %t", compiled, test.want)
			}
			if swapped := c.Current() != set; swapped != test.want {
				t.Errorf("the set was swapped: %t, want %t", swapped, test.want)
			}
			if told := notified > 1; told != test.want {
				t.Errorf("watchers were told: %t, want %t", told, test.want)
			}
			report, ok := c.Report(policy.ID{Kind: "Rule", Name: "a"})
			if !ok || report.Generation != test.obj.GetGeneration() || report.UID != test.obj.GetUID() || report.ResourceVersion != test.obj.GetResourceVersion() {
				t.Errorf("reported is %+v, %t", report, ok)
			}
		})
	}
}

// TestDamageConcernsItselfAlone writes damaged objects beside good ones.
func TestDamageConcernsItselfAlone(t *testing.T) {
	broken := errors.New("broken")
	id := policy.ID{Kind: "Rule", Name: "b"}
	tests := []struct {
		name    string
		changes []catalog.Change
		want    string // beside what the good policy says
		faulty  string // the kind of the one that is reported as faulty
	}{
		{"a policy that can be read in part", []catalog.Change{write(stored("Rule", "b", "yes"), broken), write(stored("RuleBinding", "b", "b"))}, "b/b: misconfigured: broken", "Rule"},
		{"a policy that nobody binds", []catalog.Change{write(stored("Rule", "b", "yes"), broken)}, "", "Rule"},
		{"a policy of which nothing can be read", []catalog.Change{{ID: id, Damage: broken}, write(stored("RuleBinding", "b", "b"))}, "b/b: misconfigured: broken", "Rule"},
		{"a policy that makes its dialect panic", []catalog.Change{write(stored("Rule", "b", "panic")), write(stored("RuleBinding", "b", "b"))}, `b/b: misconfigured: compiling Rule "b" panicked`, "Rule"},
		{"a policy of which its dialect makes nothing", []catalog.Change{write(stored("Rule", "b", "nothing")), write(stored("RuleBinding", "b", "b"))}, `b/b: misconfigured: Rule "b" does not compile: its dialect has made nothing of it: [<nil>: Invalid value: "nothing": nothing]`, "Rule"},
		{"a policy with a fault", []catalog.Change{write(stored("Rule", "b", "fault")), write(stored("RuleBinding", "b", "b"))}, "b/b: fault", "Rule"},
		{"a binding that can be read in part", []catalog.Change{write(stored("RuleBinding", "b", "a"), broken)}, "a/b: no", "RuleBinding"},
		{"a binding of nobody knows what", []catalog.Change{write(stored("Rule", "b", "yes")), write(stored("RuleBinding", "b", ""), broken)}, "a/b: no, b/b: yes", "RuleBinding"},
		{"a binding that makes its dialect panic", []catalog.Change{write(stored("Rule", "b", "yes")), write(stored("RuleBinding", "b", "panic"))}, "a/b: no, b/b: yes", "RuleBinding"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, _ := known(t)
			apply(t, c, write(stored("Rule", "a", "no")), write(stored("RuleBinding", "a", "a")))
			apply(t, c, test.changes...)
			want := "a/a: no"
			if test.want != "" {
				want += ", " + test.want
			}
			if got := judged(t, c); got != want {
				t.Errorf("judged by %s, want %s", got, want)
			}
			var gone []catalog.Change
			for _, change := range test.changes {
				gone = append(gone, catalog.Change{ID: change.ID})
				report, ok := c.Report(change.ID)
				if faulty := report.Damage != nil || len(report.Faults) > 0; !ok || faulty != (change.ID.Kind == test.faulty) {
					t.Errorf("reported of %v is %+v, %t", change.ID, report, ok)
				}
			}
			apply(t, c, gone...)
			if got := judged(t, c); got != "a/a: no" {
				t.Errorf("after the deletion judged by %s", got)
			}
		})
	}
}

// TestDamagedAnew: what can be read of a damaged object counts as it was written last.
func TestDamagedAnew(t *testing.T) {
	c, _ := known(t)
	broken := errors.New("broken")
	apply(t, c, write(stored("Rule", "a", "no")), write(stored("Rule", "b", "yes")))
	for _, step := range []struct{ names, want string }{{"a", "a/x: no"}, {"b", "b/x: yes"}} {
		apply(t, c, write(stored("RuleBinding", "x", step.names), broken))
		if got := judged(t, c); got != step.want {
			t.Errorf("judged by %q, want %q", got, step.want)
		}
	}
}

// TestLostBinding follows one through the changes around it.
func TestLostBinding(t *testing.T) {
	c, _ := known(t)
	broken := errors.New("broken")
	var told []string
	c.Watch(func(id policy.ID) { told = append(told, id.Name) })
	steps := []struct {
		name   string
		change catalog.Change
		want   string
		told   []string
		named  int // how many bindings are known to name b
	}{
		{"a policy", write(stored("Rule", "a", "no")), "", []string{"a"}, 0},
		{"a binding that names another", write(stored("RuleBinding", "x", "z")), "", []string{"x", "z"}, 0},
		{"it is lost", write(stored("RuleBinding", "x", ""), broken), "a/x: no", []string{"x", "z"}, 0},
		{"another is lost", write(stored("RuleBinding", "y", ""), broken), "a/x: no, a/y: no", []string{"y"}, 0},
		{"a new policy", write(stored("Rule", "b", "yes")), "a/x: no, a/y: no, b/x: yes, b/y: yes", []string{"b"}, 0},
		{"a policy goes", catalog.Change{ID: policy.ID{Kind: "Rule", Name: "a"}}, "b/x: yes, b/y: yes", []string{"a"}, 0},
		{"one is written anew", write(stored("RuleBinding", "x", "b")), "b/x: yes, b/y: yes", []string{"b", "x"}, 1},
		{"the other is deleted", catalog.Change{ID: policy.ID{Kind: "RuleBinding", Name: "y"}}, "b/x: yes", []string{"y"}, 1},
		{"the binding goes", catalog.Change{ID: policy.ID{Kind: "RuleBinding", Name: "x"}}, "", []string{"b", "x"}, 0},
		{"one that nobody knew goes", catalog.Change{ID: policy.ID{Kind: "RuleBinding", Name: "w"}}, "", []string{"w"}, 0},
	}
	for _, step := range steps {
		told = nil
		apply(t, c, step.change)
		if got := judged(t, c); got != step.want {
			t.Errorf("%s: judged by %q, want %q", step.name, got, step.want)
		}
		slices.Sort(told)
		if !slices.Equal(told, step.told) {
			t.Errorf("%s: told of %v, want %v", step.name, told, step.told)
		}
		if report, _ := c.Report(policy.ID{Kind: "Rule", Name: "b"}); report.Bindings != step.named || report.Binding {
			t.Errorf("%s: reported of b is %+v, want %d bindings", step.name, report, step.named)
		}
		if report, ok := c.Report(policy.ID{Kind: "RuleBinding", Name: "x"}); ok && !report.Binding {
			t.Errorf("%s: a binding is reported as a policy", step.name)
		}
	}
}

// TestParamsOfDamagedBindings: a policy that wants params must not be judged as if
// the binding gave none.
func TestParamsOfDamagedBindings(t *testing.T) {
	c, _ := known(t)
	broken := errors.New("broken")
	apply(t, c, write(stored("Rule", "a", "no")), write(stored("RuleBinding", "a", "a"), broken))
	binding := c.Current().All()[0].Bindings[0].Binding
	if binding.Params == nil || !errors.Is(binding.Params.Err, broken) {
		t.Errorf("params are %+v", binding.Params)
	}
}

// TestWhatCannotBeConvertedConcernsItselfAlone follows a source through a
// conversion that fails for one object and panics for another.
func TestWhatCannotBeConvertedConcernsItselfAlone(t *testing.T) {
	source, informer := fakeSource(t, stored("Rule", "a", "no"), stored("Rule", "b", "no"), stored("Rule", "c", "no"), stored("Rule", "d", "no"))
	_, bindings := fakeSource(t, stored("RuleBinding", "a", "a"), stored("RuleBinding", "b", "b"), stored("RuleBinding", "c", "c"), stored("RuleBinding", "d", "d"))
	c := catalog.New([]policy.Dialect{&rules{}})
	empty := func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{"kind": "Rule"}} }
	convert := func(obj runtime.Object) (runtime.Object, error) {
		switch typed, ok := obj.(*unstructured.Unstructured); {
		case ok && typed.GetKind() == "Rule" && typed.GetName() == "b":
			return nil, errors.New("unconvertible")
		case ok && typed.GetKind() == "Rule" && typed.GetName() == "c":
			panic("the conversion panics")
		case ok && typed.GetKind() == "Rule" && typed.GetName() == "d":
			return nil, nil //nolint:nilnil // what a conversion must not do
		}
		return obj, nil
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- c.Run(ctx, []catalog.Source{{Kind: "Rule", Informer: informer, New: empty}, {Kind: "RuleBinding", Informer: bindings}}, convert)
	}()
	go informer.RunWithContext(ctx)
	go bindings.RunWithContext(ctx)
	eventually(t, "the first set is not complete", func() bool { return c.Current() != nil })
	want := "a/a: no, b/b: misconfigured: unconvertible, c/c: misconfigured: converting the stored object panicked: the conversion panics, " +
		"d/d: misconfigured: converting the stored object has left nothing of it"
	if got := judged(t, c); got != want {
		t.Errorf("judged by %s, want %s", got, want)
	}
	for _, name := range []string{"b", "c", "d"} {
		// Nobody else knows which version of it is in force.
		report, ok := c.Report(policy.ID{Kind: "Rule", Name: name})
		if !ok || report.Damage == nil || report.UID != "u" || report.Generation != 1 || report.ResourceVersion == "" {
			t.Errorf("reported of %s is %+v, %t", name, report, ok)
		}
	}
	source.Delete(stored("Rule", "b", "no"))
	eventually(t, "the deletion is not followed", func() bool { return !strings.Contains(judged(t, c), "b/b") })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

func TestNothingIsReportedBeforeTheFirstSet(t *testing.T) {
	c := catalog.New([]policy.Dialect{&rules{}})
	if report, ok := c.Report(policy.ID{Kind: "Rule", Name: "a"}); ok {
		t.Errorf("got %+v", report)
	}
}
