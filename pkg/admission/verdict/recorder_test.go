// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestRecorderFoldsNothingToAnAdmission(t *testing.T) {
	if v := (&Recorder{}).Fold(); !v.Allowed || len(v.Evaluations) != 0 {
		t.Errorf("got %+v, want an admission: no policy has anything to say", v)
	}
}

// TestRecorderFolds: each finding is an evaluation with what was recorded with it, in
// order, except annotations.
func TestRecorderFolds(t *testing.T) {
	one, two := &Origin{Policy: PolicyID{Name: "one"}, Actions: []Action{Warn}}, &Origin{Policy: PolicyID{Name: "two"}, Actions: []Action{Audit}}
	findings := []Finding{{Kind: Pass}, {Kind: Annotation, Key: "k", Value: "v"}, {Kind: Fail, Message: "m"}}
	r := &Recorder{}
	const rounds = 20 // more than there is room for from the start
	for range rounds {
		if err := errors.Join(r.Add(one, 1, findings...), r.Add(two, 2, findings...)); err != nil {
			t.Fatal(err)
		}
	}
	v := r.Fold()
	want := []Evaluation{
		{Origin: one, Finding: &findings[0], Took: 1, Outcome: Passed},
		{Origin: one, Finding: &findings[2], Took: 1, Outcome: Warned},
		{Origin: two, Finding: &findings[0], Took: 2, Outcome: Passed},
		{Origin: two, Finding: &findings[2], Took: 2, Outcome: Audited},
	}
	if !slices.Equal(v.Evaluations, slices.Repeat(want, rounds)) {
		t.Errorf("got evaluations %+v, want %d times %+v", v.Evaluations, rounds, want)
	}
	if !v.Allowed || len(v.Warnings) != 1 || v.AuditAnnotations["one/k"] != "v" || v.AuditAnnotations["two/k"] != "v" {
		t.Errorf("got %+v, want an admission with a warning and the annotation of both", v)
	}
}

func TestRecorderOfContext(t *testing.T) {
	if r := RecorderFrom(t.Context()); r != nil {
		t.Errorf("got %v of a context without a recorder", r)
	}
	want := &Recorder{}
	if got := RecorderFrom(WithRecorder(t.Context(), want)); got != want {
		t.Errorf("got %p, want %p", got, want)
	}
}

// TestRecorderBounds: what decides is bounded by an error, what only explains is
// left out and counted.
func TestRecorderBounds(t *testing.T) {
	pass, unmatched := Finding{Kind: Pass}, Finding{Kind: NotMatched, Message: "x"}
	r := &Recorder{}
	for range maxUnmatched + 7 {
		if err := r.Add(&Origin{}, 0, unmatched); err != nil {
			t.Fatal(err)
		}
	}
	for range maxSteps {
		if err := r.Add(&Origin{}, 0, pass); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Add(&Origin{}, 0, unmatched); err != nil {
		t.Errorf("got error %v for a step that decides nothing", err)
	}
	if err := r.Add(&Origin{}, 0, pass); !errors.Is(err, ErrTooManyEvaluations) {
		t.Errorf("got error %v for one step too many, want ErrTooManyEvaluations", err)
	}
	if v := r.Fold(); v.Unlisted != 8 || len(v.Evaluations) != maxSteps+maxUnmatched {
		t.Errorf("got %d unlisted and %d evaluations, want 8 and %d", v.Unlisted, len(v.Evaluations), maxSteps+maxUnmatched)
	}

	long := Finding{Kind: Fail, Message: strings.Repeat("x", maxTextBytes)}
	r = &Recorder{}
	if err := r.Add(&Origin{}, 0, long); err != nil {
		t.Fatal(err)
	}
	long.Message = "x"
	if err := r.Add(&Origin{}, 0, long); !errors.Is(err, ErrTooManyEvaluations) {
		t.Errorf("got error %v for one byte too many, want ErrTooManyEvaluations", err)
	}
}

// TestRecorderBoundsExplanations: long reasons are left out and counted, and
// values are left out, before anything fails.
func TestRecorderBoundsExplanations(t *testing.T) {
	r := &Recorder{}
	for range 20 {
		if err := r.Add(&Origin{}, 0, Finding{Kind: NotMatched, Expression: strings.Repeat("x", maxReasonBytes/10)}); err != nil {
			t.Fatal(err)
		}
	}
	value := json.RawMessage(`"` + strings.Repeat("x", maxValueBytes/10) + `"`)
	for range 20 {
		traced := &Trace{Cost: 1, Values: map[string]json.RawMessage{"object": value}}
		if err := r.Add(&Origin{}, 0, Finding{Kind: Pass, Trace: traced}); err != nil {
			t.Fatal(err)
		}
	}
	v := r.Fold()
	if v.Unlisted != 10 {
		t.Errorf("got %d unlisted, want 10", v.Unlisted)
	}
	values := 0
	for _, evaluation := range v.Evaluations {
		if trace := evaluation.Finding.Trace; trace != nil {
			values += len(trace.Values)
			if trace.Cost != 1 {
				t.Errorf("got cost %d without values, want 1", trace.Cost)
			}
		}
	}
	if values != 9 || len(v.Evaluations) != 30 {
		t.Errorf("got %d values in %d evaluations, want 9 in 30", values, len(v.Evaluations))
	}
}
