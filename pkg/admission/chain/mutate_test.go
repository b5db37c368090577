// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// stamp returns a policy that mutates, written as name: label=value, label+=value, and
// if=label before that.
func stamp(t *testing.T, kind, name, text string) *policy.Unit {
	t.Helper()
	fields := map[string]any{}
	if condition, rest, ok := strings.Cut(text, ": "); ok {
		fields["when"], text = condition, rest
	}
	label, value, _ := strings.Cut(text, "=")
	fields["label"], fields["value"] = strings.TrimSuffix(label, "+"), value
	fields["more"] = strings.HasSuffix(label, "+")
	stored := &unstructured.Unstructured{Object: fields}
	stored.SetName(name)
	unit, errs := dialecttest.Stamp{Kind: kind}.Compile(t.Context(), stored)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return unit
}

func labelsOf(object *unstructured.Unstructured) string {
	if object == nil {
		return "unchanged"
	}
	labels := object.GetLabels()
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return strings.Join(texts, " ")
}

// steps says what became of each step.
func steps(v verdict.Verdict) string {
	names := map[verdict.Outcome]string{
		verdict.Changed: "changed", verdict.Skipped: "skipped", verdict.Denied: "denied", verdict.Failed: "failed",
		verdict.Passed: "passed", verdict.Unmatched: "unmatched",
	}
	var texts []string
	for i := range v.Evaluations {
		texts = append(texts, v.Evaluations[i].Policy.Name+" "+names[v.Evaluations[i].Outcome])
	}
	return strings.Join(texts, ", ")
}

// TestMutate: policies that mutate change the object one after the other, those that
// judge have no part in it, and an error changes nothing.
func TestMutate(t *testing.T) {
	tests := []struct {
		name    string
		units   []*policy.Unit
		ignored bool // the failurePolicy of all
		object  string
		steps   string
		denied  bool
	}{
		{name: "nobody mutates", units: []*policy.Unit{toy(t, "a", "nginx")}, object: "unchanged"},
		{name: "one", units: []*policy.Unit{stamp(t, "", "a", "x=1")}, object: "x=1", steps: "a changed"},
		{name: "in the order of names", units: []*policy.Unit{stamp(t, "", "b", "x+=2"), stamp(t, "", "a", "x+=1")}, object: "x=12", steps: "a changed, b changed"},
		{name: "each sees what the former have made", units: []*policy.Unit{stamp(t, "", "a", "x=1"), stamp(t, "", "b", "x: y=1")}, object: "x=1 y=1", steps: "a changed, b changed"},
		{name: "and not what the later ones make", units: []*policy.Unit{stamp(t, "", "b", "x=1"), stamp(t, "", "a", "x: y=1")}, object: "x=1", steps: "a skipped, b changed"},
		{name: "those that judge stay out", units: []*policy.Unit{stamp(t, "", "b", "x=1"), toy(t, "a", "nginx")}, object: "x=1", steps: "b changed"},
		{name: "an error denies", units: []*policy.Unit{stamp(t, "", "a", "x=error"), stamp(t, "", "b", "x=1")}, object: "x=1", steps: "a failed, b changed", denied: true},
		{name: "or changes nothing", units: []*policy.Unit{stamp(t, "", "a", "x=error"), stamp(t, "", "b", "x=1")}, ignored: true, object: "x=1", steps: "a failed, b changed"},
		{name: "a panic is an error", units: []*policy.Unit{stamp(t, "", "a", "x=panic"), stamp(t, "", "b", "x=1")}, object: "x=1", steps: "a failed, b changed", denied: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, unit := range test.units {
				if test.ignored {
					unit.Policy.OnError = verdict.Ignore
				}
			}
			set := (&policy.Set{}).Edit(nil, test.units)
			req := pod("nginx", "default")
			before := req.Object.DeepCopy()
			question, err := chain.New(func() *policy.Set { return set }, clock.RealClock{}).Try(chain.Trial{Request: req, View: view(t)})
			if err != nil {
				t.Fatal(err)
			}
			var recorder verdict.Recorder
			if err := question.Mutate(t.Context(), nil, &recorder); err != nil {
				t.Fatal(err)
			}
			got := recorder.Fold()
			if object := labelsOf(question.Object()); object != test.object || got.Allowed == test.denied || steps(got) != test.steps {
				t.Errorf("got %q (%s), allowed: %v; want %q (%s)", object, steps(got), got.Allowed, test.object, test.steps)
			}
			if labelsOf(req.Object) != labelsOf(before) {
				t.Errorf("the request has been changed: %v", req.Object)
			}
			if question.Reinvoke() {
				t.Error("policies of one language are not asked again")
			}
		})
	}
}

// TestJudgeWhatWasMutated: who judges after Mutate sees what has become of the object.
func TestJudgeWhatWasMutated(t *testing.T) {
	set := (&policy.Set{}).Edit(nil, []*policy.Unit{stamp(t, "", "a", "x=1")})
	seen := &seeing{}
	set = set.Edit(nil, []*policy.Unit{{ID: policy.ID{Kind: "Seeing", Name: "s"}, Policy: &policy.Policy{Criteria: stamp(t, "", "", "x=1").Policy.Criteria, Program: seen}}})
	question, err := chain.New(func() *policy.Set { return set }, clock.RealClock{}).Try(chain.Trial{Request: pod("nginx", "default"), View: view(t)})
	if err != nil {
		t.Fatal(err)
	}
	var recorder verdict.Recorder
	if err := errors.Join(question.Mutate(t.Context(), nil, &recorder), question.Judge(t.Context(), nil, &recorder)); err != nil {
		t.Fatal(err)
	}
	if seen.object != "x=1" {
		t.Errorf("the policy that judges sees %q, want x=1", seen.object)
	}
}

type seeing struct{ object string }

func (s *seeing) Evaluate(_ context.Context, in policy.Input) []verdict.Finding {
	s.object = labelsOf(in.Request.Object)
	return nil
}

// TestReinvoke: policies of a language are asked once more when a later language has
// changed the object, once.
func TestReinvoke(t *testing.T) {
	tests := []struct {
		name   string
		early  string // a policy of the first language
		late   string // one of the second
		again  bool
		object string
		steps  string
	}{
		{name: "the later one changes nothing", early: "x=1", late: "absent: y=1", object: "x=1", steps: "early changed, late skipped"},
		{name: "the earlier one has something to add", early: "y: z=1", late: "y=1", again: true, object: "y=1 z=1", steps: "early skipped, late changed, early changed"},
		{name: "or not", early: "x=1", late: "y=1", again: true, object: "x=1 y=1", steps: "early changed, late changed"},
		{name: "without end, but once", early: "x+=1", late: "x+=2", again: true, object: "x=1212", steps: "early changed, late changed, early changed, late changed"},
		{name: "an error is told of", early: "y: z=error", late: "y=1", again: true, object: "y=1", steps: "early failed, late changed, early failed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := (&policy.Set{}).Edit(nil, []*policy.Unit{stamp(t, "Early", "early", test.early), stamp(t, "Late", "late", test.late)})
			question, err := chain.New(func() *policy.Set { return set }, clock.RealClock{}).Try(chain.Trial{Request: pod("nginx", "default"), View: view(t)})
			if err != nil {
				t.Fatal(err)
			}
			var recorder verdict.Recorder
			pass := func() {
				for _, kind := range []string{"Early", "Late"} {
					if err := question.Mutate(t.Context(), []string{kind}, &recorder); err != nil {
						t.Fatal(err)
					}
				}
			}
			pass()
			if again := question.Reinvoke(); again != test.again {
				t.Errorf("asked again: %v, want %v", again, test.again)
			}
			if test.again {
				pass()
			}
			if question.Reinvoke() {
				t.Error("a second time")
			}
			if got := fmt.Sprintf("%s (%s)", labelsOf(question.Object()), steps(recorder.Fold())); got != fmt.Sprintf("%s (%s)", test.object, test.steps) {
				t.Errorf("got %s, want %s (%s)", got, test.object, test.steps)
			}
		})
	}
}

// TestMutateIsBounded: policies that together would write too much into the object are
// errors, whose failurePolicy decides, and change nothing.
func TestMutateIsBounded(t *testing.T) {
	const size = 6 << 20
	grow := func(name string) *policy.Unit {
		unit := stamp(t, "", name, name+"=1")
		unit.Policy.Program = programFunc(func(_ context.Context, in policy.Input) []verdict.Finding {
			object := in.Request.Object.DeepCopy()
			object.SetLabels(map[string]string{name: strings.Repeat("x", size)})
			return []verdict.Finding{{Kind: verdict.Mutated, Object: object}}
		})
		return unit
	}
	for _, ignored := range []bool{false, true} {
		units := []*policy.Unit{grow("a"), grow("b"), grow("c"), stamp(t, "", "d", "small=1")}
		if ignored {
			units[2].Policy.OnError = verdict.Ignore
		}
		set := (&policy.Set{}).Edit(nil, units)
		question, err := chain.New(func() *policy.Set { return set }, clock.RealClock{}).Try(chain.Trial{Request: pod("nginx", "default"), View: view(t)})
		if err != nil {
			t.Fatal(err)
		}
		var recorder verdict.Recorder
		if err := question.Mutate(t.Context(), nil, &recorder); err != nil {
			t.Fatal(err)
		}
		got := recorder.Fold()
		if want := "a changed, b changed, c failed, d changed"; steps(got) != want || len(question.Object().GetLabels()["b"]) != size || got.Allowed != ignored {
			t.Errorf("ignored %v: got %s, allowed: %v", ignored, steps(got), got.Allowed)
		}
		if want := "the policies would write more than 16 MiB into the object"; !strings.Contains(got.Evaluations[2].Finding.Message, want) {
			t.Errorf("got %q, want %q", got.Evaluations[2].Finding.Message, want)
		}
	}
}
