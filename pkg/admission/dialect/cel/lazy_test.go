// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"reflect"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// slowClock says that something took a while whenever it is asked.
type slowClock struct {
	clock.PassiveClock
	took time.Duration
}

func (c slowClock) Since(time.Time) time.Duration { return c.took }

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
		l, errs := newLazyProgram(newCompiler(), spec)
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
