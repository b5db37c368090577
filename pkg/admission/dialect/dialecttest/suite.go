// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dialecttest is the suite that every dialect passes, with a toy
// dialect that shows how small one can be. It is for tests only.
package dialecttest

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// Suite is what a dialect brings to be tested.
type Suite struct {
	Dialect policy.Dialect
	// Request makes the request that the policies below are about, anew each
	// time.
	Request func() *request.Request
	// View is the cluster that the policies may read.
	View cluster.View

	// Allowing has nothing to object to the request, and does not change it.
	Allowing runtime.Object
	// Denying objects to the request. Nil for a dialect that only mutates.
	Denying runtime.Object
	// Mutating changes the object of the request, and its own result no more. Nil for a
	// dialect that only judges.
	Mutating runtime.Object
	// Failing cannot judge the request: a run-time error.
	Failing runtime.Object
	// Reading reads from View what is not there, and has no answer to that.
	Reading runtime.Object
	// Exhausting would take more time or memory than a policy may.
	Exhausting runtime.Object
	// Broken does not compile. Nil when every stored object compiles.
	Broken runtime.Object
}

const (
	goroutines = 100
	repeats    = 20
	// patience is the longest that a policy may take to find out that it takes too much.
	patience = 5 * time.Second
)

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	t.Helper()
	t.Run("has a name and kinds", s.named)
	t.Run("refuses what is not of its kinds", s.foreign)
	t.Run("allows", s.allows)
	t.Run("denies with a message", s.denies)
	t.Run("mutates until nothing is left to change", s.mutates)
	t.Run("reports what cannot be judged", func(t *testing.T) { s.expect(t, s.Failing, verdict.Error) })
	t.Run("takes what is absent for an error", s.absent)
	t.Run("ends when the budget is spent", s.exhausted)
	t.Run("works after a panic inside", s.panicked)
	t.Run("names the field that does not compile", s.broken)
	t.Run("stops when the context ends", s.cancelled)
	t.Run("leaves its input alone", s.unchanged)
	t.Run("is deterministic", s.deterministic)
	t.Run("is safe for concurrent use", s.concurrent)
	t.Run("finds the same when it explains itself", s.explained)
	t.Run("finds the same after a rest", s.rested)
}

func (s Suite) named(t *testing.T) {
	if s.Dialect.Name() == "" || len(s.Dialect.Kinds()) == 0 {
		t.Errorf("name %q, kinds %v", s.Dialect.Name(), s.Dialect.Kinds())
	}
}

func (s Suite) foreign(t *testing.T) {
	unit, errs := s.Dialect.Compile(t.Context(), &unstructured.UnstructuredList{})
	if unit != nil || len(errs) == 0 {
		t.Errorf("got unit %v and errors %v, want none and some", unit, errs)
	}
}

// expect evaluates obj and wants a finding of kind, with a message unless it
// passes, and none that is worse.
func (s Suite) expect(t *testing.T, obj runtime.Object, kind verdict.Kind) {
	t.Helper()
	found := false
	for _, finding := range s.evaluate(t.Context(), t, s.compile(t, obj), s.Request()) {
		if finding.Kind != kind {
			t.Errorf("got %+v, want only findings of kind %d", finding, kind)
		}
		if kind != verdict.Pass && finding.Message == "" {
			t.Errorf("the finding has no message: %+v", finding)
		}
		found = true
	}
	if !found && kind != verdict.Pass {
		t.Errorf("no finding, want kind %d", kind)
	}
}

// active is a policy that does what the dialect is for.
func (s Suite) active() runtime.Object {
	if s.Denying != nil {
		return s.Denying
	}
	return s.Mutating
}

// allows accepts that a rule with nothing to change skips the request.
func (s Suite) allows(t *testing.T) {
	for _, finding := range s.evaluate(t.Context(), t, s.compile(t, s.Allowing), s.Request()) {
		if finding.Kind != verdict.Pass && (s.Mutating == nil || finding.Kind != verdict.Skip) {
			t.Errorf("got %+v, want only findings that pass", finding)
		}
	}
}

func (s Suite) denies(t *testing.T) {
	if s.Denying == nil {
		t.Skip("only mutates")
	}
	s.expect(t, s.Denying, verdict.Fail)
}

func (s Suite) mutates(t *testing.T) {
	if s.Mutating == nil {
		t.Skip("only judges")
	}
	unit, req := s.compile(t, s.Mutating), s.Request()
	if !unit.Policy.Mutates {
		t.Error("the policy does not say that it mutates")
	}
	first := s.mutated(t, unit, req)
	if first == nil {
		t.Fatal("nothing has changed")
	}
	if again := s.mutated(t, unit, req.WithObject(first)); again != nil {
		t.Errorf("it changes its own result:\n%s", cmp.Diff(first, again))
	}
}

// mutated returns what a policy makes of the object of a request, or nil.
func (s Suite) mutated(t *testing.T, unit *policy.Unit, req *request.Request) (object *unstructured.Unstructured) {
	t.Helper()
	for _, finding := range s.evaluate(t.Context(), t, unit, req) {
		switch {
		case finding.Kind == verdict.Mutated && finding.Object != nil:
			object = finding.Object
		case finding.Kind == verdict.Mutated || finding.Kind != verdict.Skip && finding.Kind != verdict.Pass:
			t.Errorf("got %+v", finding)
		}
	}
	return object
}

func (s Suite) exhausted(t *testing.T) {
	unit := s.compile(t, s.Exhausting)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found := false
	for _, finding := range s.evaluate(ctx, t, unit, s.Request()) {
		found = found || finding.Kind == verdict.Error
		if finding.Kind == verdict.Pass || finding.Kind == verdict.Mutated || finding.Message == "" {
			t.Errorf("got %+v, want an error that says what was spent", finding)
		}
	}
	if !found || ctx.Err() != nil {
		t.Errorf("found an error: %v; ended in time: %v", found, ctx.Err() == nil)
	}
}

// absent wants an error of the policy that reads what is not there.
func (s Suite) absent(t *testing.T) {
	findings := s.evaluate(t.Context(), t, s.compile(t, s.Reading), s.Request())
	if len(findings) == 0 {
		t.Error("no finding, want an error")
	}
	for _, finding := range findings {
		if finding.Kind != verdict.Error && finding.Kind != verdict.Misconfigured || finding.Message == "" {
			t.Errorf("got %+v, want an error with a message", finding)
		}
	}
}

// brokenView panics whatever it is asked.
type brokenView struct{ cluster.View }

// panicked lets a policy panic while it reads, which is for the chain to contain, and
// wants it and others to work as before.
func (s Suite) panicked(t *testing.T) {
	reading, active := s.compile(t, s.Reading), s.compile(t, s.active())
	want := s.evaluate(t.Context(), t, active, s.Request())
	broken := s
	broken.View = brokenView{}
	for range repeats {
		func() {
			defer func() { _ = recover() }()
			for _, finding := range broken.evaluate(t.Context(), t, reading, s.Request()) {
				if finding.Kind == verdict.Pass || finding.Kind == verdict.Mutated {
					t.Errorf("got %+v from a view that cannot be read", finding)
				}
			}
		}()
	}
	s.absent(t)
	if diff := cmp.Diff(want, s.evaluate(t.Context(), t, active, s.Request())); diff != "" {
		t.Errorf("after a panic another policy finds something else (-before +after):\n%s", diff)
	}
}

func (s Suite) broken(t *testing.T) {
	if s.Broken == nil {
		t.Skip("every stored object compiles")
	}
	unit, errs := s.Dialect.Compile(t.Context(), s.Broken)
	if len(errs) == 0 {
		t.Error("no errors")
	}
	for _, err := range errs {
		if err.Field == "" || err.Detail == "" {
			t.Errorf("the error names no field or no reason: %+v", err)
		}
	}
	if unit == nil {
		t.Fatal("no unit: the requests that the policy matches would pass")
	}
	for _, finding := range s.evaluate(t.Context(), t, unit, s.Request()) {
		if finding.Kind == verdict.Pass {
			t.Errorf("a policy that does not compile passes: %+v", finding)
		}
	}
}

func (s Suite) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, obj := range []runtime.Object{s.Allowing, s.active()} {
		findings := s.evaluate(ctx, t, s.compile(t, obj), s.Request())
		if len(findings) != 1 || findings[0].Kind != verdict.Error || findings[0].Message != context.Canceled.Error() {
			t.Errorf("got %+v, want one error that says %q", findings, context.Canceled)
		}
	}
}

func (s Suite) unchanged(t *testing.T) {
	obj := s.active().DeepCopyObject()
	req, untouched := s.Request(), s.Request()
	s.evaluate(t.Context(), t, s.compile(t, s.active()), req)
	if diff := cmp.Diff(untouched.Fields, req.Fields); diff != "" {
		t.Errorf("the request was changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(obj, s.active()); diff != "" {
		t.Errorf("the stored object was changed (-before +after):\n%s", diff)
	}
}

func (s Suite) deterministic(t *testing.T) {
	unit := s.compile(t, s.active())
	first := s.evaluate(t.Context(), t, unit, s.Request())
	for range repeats {
		if diff := cmp.Diff(first, s.evaluate(t.Context(), t, unit, s.Request())); diff != "" {
			t.Fatalf("findings differ (-first +later):\n%s", diff)
		}
	}
}

func (s Suite) concurrent(t *testing.T) {
	unit, req := s.compile(t, s.active()), s.Request()
	want := s.evaluate(t.Context(), t, unit, s.Request())
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			if got := s.evaluate(t.Context(), t, unit, req); !reflect.DeepEqual(want, got) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	group.Wait()
}

// explained evaluates with and without an explanation, also at the same time and
// on the same request.
func (s Suite) explained(t *testing.T) {
	for name, obj := range map[string]runtime.Object{"allowing": s.Allowing, "active": s.active(), "failing": s.Failing} {
		unit, req := s.compile(t, obj), s.Request()
		want := s.evaluate(t.Context(), t, unit, s.Request())
		var group sync.WaitGroup
		for i := range repeats {
			group.Go(func() {
				var explain *policy.Explain
				if i%2 == 0 {
					explain = &policy.Explain{}
				}
				got := slices.Clone(s.explain(t.Context(), unit, req, explain)) // they are shared
				for i := range got {
					if got[i].Trace != nil && explain == nil {
						t.Errorf("%s: a trace that nobody asked for: %+v", name, got[i])
					}
					got[i].Trace = nil
				}
				if !reflect.DeepEqual(want, got) {
					t.Errorf("%s: got %+v, want %+v", name, got, want)
				}
			})
		}
		group.Wait()
	}
}

// rested evaluates while the program is told to rest.
func (s Suite) rested(t *testing.T) {
	for name, obj := range map[string]runtime.Object{"allowing": s.Allowing, "active": s.active(), "failing": s.Failing} {
		unit := s.compile(t, obj)
		program, ok := unit.Policy.Program.(policy.Resting)
		if !ok {
			t.Skip("puts nothing away")
		}
		want := s.evaluate(t.Context(), t, unit, s.Request())
		var group sync.WaitGroup
		for range goroutines {
			group.Go(func() {
				program.Rest()
				program.Rest()
				if got := s.evaluate(t.Context(), t, unit, s.Request()); !reflect.DeepEqual(want, got) {
					t.Errorf("%s: got %+v, want %+v", name, got, want)
				}
			})
		}
		group.Wait()
	}
}

func (s Suite) compile(t *testing.T, obj runtime.Object) *policy.Unit {
	t.Helper()
	unit, errs := s.Dialect.Compile(t.Context(), obj)
	if len(errs) > 0 {
		t.Fatalf("compile: %v", errs.ToAggregate())
	}
	if unit == nil || unit.Policy == nil || unit.Policy.Program == nil {
		t.Fatalf("got unit %+v, want a policy with a program", unit)
	}
	return unit
}

func (s Suite) evaluate(ctx context.Context, t *testing.T, unit *policy.Unit, req *request.Request) []verdict.Finding {
	t.Helper()
	return s.explain(ctx, unit, req, nil)
}

func (s Suite) explain(ctx context.Context, unit *policy.Unit, req *request.Request, explain *policy.Explain) []verdict.Finding {
	return unit.Policy.Program.Evaluate(ctx, policy.Input{
		Request: req,
		Matched: cluster.Equivalent{Resource: req.RequestResource, Kind: req.RequestKind},
		View:    s.View,
		Explain: explain,
	})
}
