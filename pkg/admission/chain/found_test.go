// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// about has a policy be found by the kind Pod with labels.
func about(unit *policy.Unit, labels map[string]string) *policy.Unit {
	changed := *unit.Policy
	changed.Criteria = match.CompileKinds("", []match.Kind{{Group: "*", Version: "*", Kind: "Pod", Labels: labels}})
	return &policy.Unit{ID: unit.ID, Policy: &changed}
}

// TestMutateFindsWhatTheObjectHasBecome: a policy that is about labels is asked when a
// former one has set them, and one before that when all are asked again.
func TestMutateFindsWhatTheObjectHasBecome(t *testing.T) {
	set := (&policy.Set{}).Edit(nil, []*policy.Unit{
		about(stamp(t, "Toy", "a", "early=yes"), map[string]string{"third": "yes"}),
		about(stamp(t, "Toy", "b", "first=yes"), nil),
		about(stamp(t, "Toy", "c", "second=yes"), map[string]string{"first": "yes"}),
		about(stamp(t, "Toy", "d", "never=yes"), map[string]string{"other": "yes"}),
		about(stamp(t, "Toy", "e", "third=yes"), map[string]string{"first": "yes", "second": "yes"}),
	})
	question, err := judging(set).Try(chain.Trial{Request: pod("nginx", "default"), View: view(t)})
	if err != nil {
		t.Fatal(err)
	}
	recorder := &verdict.Recorder{}
	if err := question.Mutate(t.Context(), nil, recorder); err != nil {
		t.Fatal(err)
	}
	if got := labelsOf(question.Object()); got != "first=yes second=yes third=yes" {
		t.Errorf("got the labels %q", got)
	}
	if got := steps(recorder.Fold()); got != "b changed, c changed, e changed" {
		t.Errorf("got the steps %q", got)
	}
}

// selective is a program that is not to be asked.
type selective struct {
	policy.Program
	asked int
}

func (s *selective) Selects(*request.Request) bool {
	s.asked++
	return false
}

// TestSelective: a program that says that a request is not for it is asked only where
// someone wants to know why.
func TestSelective(t *testing.T) {
	unit := stamp(t, "Toy", "a", "label=yes")
	program := &selective{Program: unit.Policy.Program}
	unit.Policy.Program = program
	set := (&policy.Set{}).Edit(nil, []*policy.Unit{unit})
	for _, explain := range []*policy.Explain{nil, {}} {
		question, err := judging(set).Try(chain.Trial{Request: pod("nginx", "default"), View: view(t), Explain: explain})
		if err != nil {
			t.Fatal(err)
		}
		if err := question.Mutate(t.Context(), nil, &verdict.Recorder{}); err != nil {
			t.Fatal(err)
		}
		if changed := question.Object() != nil; changed != (explain != nil) {
			t.Errorf("explained: %v, and it has changed the object: %v", explain != nil, changed)
		}
	}
	if program.asked != 1 {
		t.Errorf("it was asked whether it selects %d times, want once", program.asked)
	}
}
