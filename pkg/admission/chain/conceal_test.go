// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// TestConcealedObject: once a policy has put into the object what the asker may not read,
// nothing that comes after tells it, and no candidate is asked.
func TestConcealedObject(t *testing.T) {
	for _, test := range []struct {
		name      string
		reads     bool
		concealed string
		steps     string
		hidden    bool
	}{
		{"read by one who may not", true, "the settings", "a changed, b changed, c failed", true},
		{"read by one who may", true, "", "a changed, b changed, c changed", false},
		// The data of a Secret that the request carries is concealed by each policy itself.
		{"not read of the cluster", false, "the Secret", "a changed, b changed, c changed", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			telling := func(name, concealed string) *policy.Unit {
				unit := stamp(t, "", name, name+"=1")
				program := unit.Policy.Program
				unit.Policy.Program = programFunc(func(ctx context.Context, in policy.Input) []verdict.Finding {
					findings := program.Evaluate(ctx, in)
					for i := range findings {
						findings[i].Trace = &verdict.Trace{Concealed: concealed, Values: map[string]json.RawMessage{"x": json.RawMessage(`"told"`)}}
					}
					return findings
				})
				return unit
			}
			maker := telling("a", test.concealed)
			if test.reads {
				maker.Policy.Reads = []policy.Read{{Verb: "get"}}
			}
			set := (&policy.Set{}).Edit(nil, []*policy.Unit{maker, telling("b", "")})
			question, err := chain.New(func() *policy.Set { return set }, clock.RealClock{}).Try(chain.Trial{
				Request: pod("nginx", "default"), View: view(t), Explain: &policy.Explain{},
				Candidates: []*policy.Unit{telling("c", "")}, CandidateView: view(t),
			})
			if err != nil {
				t.Fatal(err)
			}
			var recorder verdict.Recorder
			if err := question.Mutate(t.Context(), nil, &recorder); err != nil {
				t.Fatal(err)
			}
			got := recorder.Fold()
			if steps(got) != test.steps || got.Allowed == test.hidden {
				t.Errorf("got %s, allowed: %v, want %s", steps(got), got.Allowed, test.steps)
			}
			later := got.Evaluations[1].Finding
			if hidden := later.Trace.Values == nil && later.Shown("it is told") == "(concealed: the settings)"; hidden != test.hidden {
				t.Errorf("the second policy tells %s and %s", later.Trace.Values, later.Shown("it is told"))
			}
			if last := got.Evaluations[2].Finding; test.hidden && !strings.HasSuffix(last.Message, "by what it read of the settings") {
				t.Errorf("the candidate says %q", last.Message)
			}
		})
	}
}
