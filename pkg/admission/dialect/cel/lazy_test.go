// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/randfill"

	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// slowClock says that something took a while whenever it is asked.
type slowClock struct {
	clock.PassiveClock
	took time.Duration
}

func (c slowClock) Since(time.Time) time.Duration { return c.took }

// quick returns a compiler that takes no time.
func quick() *compiler {
	c := newCompiler()
	c.tracing.clock = slowClock{testingclock.NewFakePassiveClock(time.Now()), 0}
	return c
}

// TestRest: what a request has needed since the last rest stays, and what no request
// shall wait for does.
func TestRest(t *testing.T) {
	for _, test := range []struct {
		name string
		took time.Duration // to compile
		// stays says after how many rests since the last use the policy is still ready.
		stays []bool
	}{
		{"a usual policy", maxRecompiling, []bool{true, false, false}},
		{"one that took long to compile", maxRecompiling + 1, []bool{true, true, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			compiler := newCompiler()
			compiler.tracing.clock = slowClock{testingclock.NewFakePassiveClock(time.Now()), test.took}
			l, errs := newLazyProgram(compiler, uniqueSpec(0))
			if len(errs) > 0 || l.compiled.Load() == nil {
				t.Fatalf("got %v with faults %v, want a program", l.compiled.Load(), errs)
			}
			input := benchInput(t)
			want := l.Evaluate(t.Context(), input())
			for range 2 { // it wakes up as it was
				for i, stays := range test.stays {
					l.Rest()
					if got := l.compiled.Load() != nil; got != stays {
						t.Errorf("after rest %d: ready is %t, want %t", i+1, got, stays)
					}
				}
				if got := l.Evaluate(t.Context(), input()); !reflect.DeepEqual(want, got) {
					t.Errorf("got %+v after a rest, want %+v", got, want)
				}
			}
		})
	}
}

// TestRestOfFaultyPolicy: what does not compile is the same error after a rest.
func TestRestOfFaultyPolicy(t *testing.T) {
	input := benchInput(t)
	for _, spec := range []*admissionregistrationv1.ValidatingAdmissionPolicySpec{
		{Validations: []admissionregistrationv1.Validation{{Expression: "object."}}},
		{
			Variables:   []admissionregistrationv1.Variable{{Name: "a", Expression: "variables.b"}, {Name: "b", Expression: "variables.a"}},
			Validations: []admissionregistrationv1.Validation{{Expression: "variables.a"}},
		},
	} {
		l, errs := newLazyProgram(quick(), spec)
		if len(errs) == 0 {
			t.Fatalf("%+v compiles", spec)
		}
		want := l.Evaluate(t.Context(), input())
		l.Rest()
		l.Rest()
		if l.compiled.Load() != nil {
			t.Error("a policy with faults does not rest")
		}
		if got := l.Evaluate(t.Context(), input()); !reflect.DeepEqual(want, got) {
			t.Errorf("got %+v after a rest, want %+v", got, want)
		}
	}
}

// TestRestForgets: what was kept beside a policy for explanations and for counting its
// costs goes with what it was compiled to.
func TestRestForgets(t *testing.T) {
	compiler := quick()
	l, errs := newLazyProgram(compiler, uniqueSpec(0))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	planner, err := compiler.planner()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.program().validations[0].program(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		compiler.tracing.tracer(l.program())
	}
	if compiler.tracing.ready.Len() != 1 || planner.ready.Len() != 1 {
		t.Fatalf("%d tracers and %d programs are kept, want one each", compiler.tracing.ready.Len(), planner.ready.Len())
	}
	l.Rest()
	l.Rest()
	if compiler.tracing.ready.Len() != 0 {
		t.Error("the tracer of a policy at rest is kept")
	}
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		runtime.GC()
		return planner.ready.Len() == 0, nil
	})
	if err != nil {
		t.Errorf("%d programs of a policy at rest are kept", planner.ready.Len())
	}
	runtime.KeepAlive(l)
}

// TestRestBesideAnother: a policy is slow when it was so but for the expressions that
// another has, as soon as that shows.
func TestRestBesideAnother(t *testing.T) {
	compiler := quick()
	l, errs := newLazyProgram(compiler, uniqueSpec(0))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	l.Rest()
	compiler.tracing.clock = slowClock{testingclock.NewFakePassiveClock(time.Now()), maxRecompiling + 1}
	l.program()
	l.Rest()
	l.Rest()
	if l.compiled.Load() == nil {
		t.Error("a policy rests although a request has waited long for it")
	}
}

// TestEncoded: a policy that is read again is the one that was written, as far as its
// JSON can tell.
func TestEncoded(t *testing.T) {
	fill := randfill.NewWithSeed(1).NilChance(0.3).NumElements(0, 3)
	for range 2_000 {
		drawn := &admissionregistrationv1.ValidatingAdmissionPolicySpec{}
		fill.Fill(drawn)
		text, err := json.Marshal(drawn)
		if err != nil {
			t.Fatal(err)
		}
		want, got := &admissionregistrationv1.ValidatingAdmissionPolicySpec{}, &admissionregistrationv1.ValidatingAdmissionPolicySpec{}
		if err := json.Unmarshal(text, want); err != nil {
			t.Fatal(err)
		}
		encoded, err := want.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Unmarshal(encoded); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// TestRestUnreadable: a policy that cannot be read again is an error, and judges as
// before once it can be.
func TestRestUnreadable(t *testing.T) {
	l, errs := newLazyProgram(quick(), uniqueSpec(0))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	input := benchInput(t)
	want := l.Evaluate(t.Context(), input())
	whole := l.spec
	l.spec = whole[:len(whole)-1]
	l.Rest()
	l.Rest()
	for range 2 {
		got := l.Evaluate(t.Context(), input())
		if len(got) != 1 || got[0].Kind != verdict.Misconfigured || !strings.HasPrefix(got[0].Message, "reading the policy again: ") {
			t.Errorf("got %+v, want an error", got)
		}
	}
	l.spec = whole
	if got := l.Evaluate(t.Context(), input()); !reflect.DeepEqual(want, got) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
