// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// effect is what one step does to a request.
type effect struct {
	Outcome  Outcome
	Allowed  bool
	Warnings int
	Audited  bool
}

// TestFoldTruthTable holds every kind of finding under every failure policy and
// every set of actions.
func TestFoldTruthTable(t *testing.T) {
	type row struct {
		kind    Kind
		onError FailurePolicy
		actions []Action
		want    effect
	}
	var (
		nothing      = func(o Outcome) effect { return effect{Outcome: o, Allowed: true} }
		deny         = []Action{Deny}
		warn         = []Action{Warn}
		audit        = []Action{Audit}
		denyAndWarn  = []Action{Deny, Warn}
		denyAndAudit = []Action{Deny, Audit}
		warnAndAudit = []Action{Warn, Audit}
		together     = []Action{Deny, Warn, Audit}
		unknown      = []Action{Action(99)}
		all          = [][]Action{nil, deny, warn, audit, denyAndWarn, denyAndAudit, warnAndAudit, together, unknown}
	)
	var rows []row
	// What has no effect has none under any policy and action.
	for _, onError := range []FailurePolicy{FailClosed, Ignore, FailurePolicy(99)} {
		for _, actions := range all {
			rows = append(rows,
				row{Pass, onError, actions, nothing(Passed)},
				row{Skip, onError, actions, nothing(Skipped)},
				row{NotMatched, onError, actions, nothing(Unmatched)},
				row{Annotation, onError, actions, effect{Allowed: true}})
		}
	}
	// A failure leads to the actions, whatever the failure policy is.
	for _, onError := range []FailurePolicy{FailClosed, Ignore, FailurePolicy(99)} {
		rows = append(rows,
			row{Fail, onError, nil, effect{Outcome: Denied}},
			row{Fail, onError, deny, effect{Outcome: Denied}},
			row{Fail, onError, warn, effect{Outcome: Warned, Allowed: true, Warnings: 1}},
			row{Fail, onError, audit, effect{Outcome: Audited, Allowed: true, Audited: true}},
			row{Fail, onError, denyAndWarn, effect{Outcome: Denied, Warnings: 1}},
			row{Fail, onError, together, effect{Outcome: Denied, Warnings: 1, Audited: true}},
			row{Fail, onError, denyAndAudit, effect{Outcome: Denied, Audited: true}},
			row{Fail, onError, warnAndAudit, effect{Outcome: Warned, Allowed: true, Warnings: 1, Audited: true}},
			row{Fail, onError, unknown, effect{Outcome: Denied}})
	}
	// An error leads to the actions, unless the failure policy ignores it; so
	// does whatever this version does not know.
	for _, kind := range []Kind{Error, Undecided, Kind(99)} {
		for _, onError := range []FailurePolicy{FailClosed, FailurePolicy(99)} {
			rows = append(rows,
				row{kind, onError, nil, effect{}},
				row{kind, onError, deny, effect{}},
				row{kind, onError, warn, effect{Allowed: true, Warnings: 1}},
				row{kind, onError, audit, effect{Allowed: true, Audited: true}},
				row{kind, onError, denyAndWarn, effect{Warnings: 1}},
				row{kind, onError, together, effect{Warnings: 1, Audited: true}},
				row{kind, onError, denyAndAudit, effect{Audited: true}},
				row{kind, onError, warnAndAudit, effect{Allowed: true, Warnings: 1, Audited: true}},
				row{kind, onError, unknown, effect{}})
		}
		for _, actions := range all {
			rows = append(rows, row{kind, Ignore, actions, nothing(Failed)})
		}
	}
	// A policy that cannot be used denies whatever the actions are.
	for _, actions := range all {
		rows = append(rows,
			row{Misconfigured, FailClosed, actions, effect{}},
			row{Misconfigured, FailurePolicy(99), actions, effect{}},
			row{Misconfigured, Ignore, actions, nothing(Failed)})
	}

	// What cannot be shown denies whatever else there is.
	for _, actions := range all {
		for _, onError := range []FailurePolicy{FailClosed, Ignore, FailurePolicy(99)} {
			rows = append(rows, row{Refused, onError, actions, effect{}})
		}
	}

	if want := len(all) * 3 * int(Refused+2); len(rows) != want { // Kind(99) is one more
		t.Errorf("the table has %d rows, want one for each of %d combinations", len(rows), want)
	}
	for _, r := range rows {
		t.Run(fmt.Sprintf("kind %d, failure policy %d, actions %v", r.kind, r.onError, r.actions), func(t *testing.T) {
			got := Fold([]Step{{
				Origin:  Origin{Policy: PolicyID{Kind: "P", Name: "p"}, Binding: "b", OnError: r.onError, Actions: r.actions},
				Finding: Finding{Kind: r.kind, Message: "m"},
			}})
			evaluations := 1
			if r.kind == Annotation {
				evaluations = 0 // it is no judgement
			}
			if len(got.Evaluations) != evaluations {
				t.Fatalf("got %d evaluations, want %d", len(got.Evaluations), evaluations)
			}
			_, audited := got.AuditAnnotations[ValidationFailureKey]
			have := effect{Allowed: got.Allowed, Warnings: len(got.Warnings), Audited: audited}
			for _, evaluation := range got.Evaluations {
				have.Outcome = evaluation.Outcome
			}
			if diff := cmp.Diff(r.want, have); diff != "" {
				t.Errorf("effect (-want +got):\n%s", diff)
			}
			if got.Allowed == (len(got.Denials) > 0) {
				t.Errorf("allowed %v with %d denials", got.Allowed, len(got.Denials))
			}
		})
	}
}

func TestZeroVerdictDenies(t *testing.T) {
	var zero Verdict
	if zero.Allowed {
		t.Error("the zero verdict allows")
	}
	status := zero.ForbiddenStatus(schema.GroupResource{Resource: "pods"}, "p")
	if want := `pods "p" is forbidden: no verdict was reached`; status.Message != want {
		t.Errorf("message %q, want %q", status.Message, want)
	}
}

func TestFoldTexts(t *testing.T) {
	policy := PolicyID{Kind: "ValidatingAdmissionPolicy", Name: "p"}
	got := Fold([]Step{
		{Origin: Origin{Policy: policy, Binding: "b", Actions: []Action{Warn, Audit}}, Finding: Finding{Kind: Fail, Index: 2, Message: "too <many>"}},
		{Origin: Origin{Policy: policy}, Finding: Finding{Kind: Misconfigured, Message: "failed to configure policy: x"}},
		{Origin: Origin{Policy: policy, Binding: "b", Actions: []Action{Deny}}, Finding: Finding{Kind: Fail, Message: "y", Reason: metav1.StatusReasonForbidden}},
	})
	want := Verdict{
		Denied: 2,
		Denials: []Denial{
			{Message: "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: x"},
			{Message: "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: y", Reason: metav1.StatusReasonForbidden},
		},
		Warnings: []string{"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': too <many>"},
		AuditAnnotations: map[string]string{
			ValidationFailureKey: `[{"message":"too \u003cmany\u003e","policy":"p","binding":"b","expressionIndex":2,"validationActions":["Warn","Audit"]}]`,
		},
	}
	got.Evaluations = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("verdict (-want +got):\n%s", diff)
	}

	forbidden := got.ForbiddenStatus(schema.GroupResource{Group: "apps", Resource: "deployments"}, "nginx")
	if want := `deployments.apps "nginx" is forbidden: ` + want.Denials[0].Message; forbidden.Message != want {
		t.Errorf("message %q, want %q", forbidden.Message, want)
	}
	if forbidden.Code != 422 || forbidden.Reason != metav1.StatusReasonInvalid || len(forbidden.Details.Causes) != 2 {
		t.Errorf("got code %d, reason %s, %d causes; want 422, Invalid, 2", forbidden.Code, forbidden.Reason, len(forbidden.Details.Causes))
	}
	if got, want := got.ReviewStatus().Message, want.Denials[0].Message+" (and 1 more: see causes)"; got != want {
		t.Errorf("review message %q, want %q", got, want)
	}
}

func TestAuditAnnotations(t *testing.T) {
	annotate := func(policy, key, value string) Step {
		return Step{Origin: Origin{Policy: PolicyID{Name: policy}}, Finding: Finding{Kind: Annotation, Key: key, Value: value}}
	}
	long := strings.Repeat("x", maxAnnotationBytes+1)
	got := Fold([]Step{
		annotate("p", "k", "one"), annotate("p", "k", "two"), annotate("p", "k", "one"),
		annotate("q", "k", "three"), annotate("q", "long", long),
	})
	want := map[string]string{"p/k": "one, two", "q/k": "three", "q/long": long[:maxAnnotationBytes]}
	if diff := cmp.Diff(want, got.AuditAnnotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if !got.Allowed || len(got.Evaluations) != 0 {
		t.Errorf("an annotation allowed %v and left %d evaluations", got.Allowed, len(got.Evaluations))
	}
}

func TestAuditFailuresAreBounded(t *testing.T) {
	steps := make([]Step, maxFailures+10)
	for i := range steps {
		steps[i] = Step{Origin: Origin{Actions: []Action{Audit}}, Finding: Finding{Kind: Fail, Index: i}}
	}
	list := Fold(steps).AuditAnnotations[ValidationFailureKey]
	if got := strings.Count(list, `"expressionIndex"`); got != maxFailures {
		t.Errorf("%d failures are listed, want %d", got, maxFailures)
	}
}

// TestOutputIsBounded: what many params make a policy say is cut.
func TestOutputIsBounded(t *testing.T) {
	var steps []Step
	for i := range maxWarnings + 10 {
		id := PolicyID{Kind: "P", Name: "p"}
		steps = append(steps,
			Step{Origin: Origin{Policy: id, Actions: []Action{Warn}}, Finding: Finding{Kind: Fail, Message: fmt.Sprint(i)}},
			Step{Origin: Origin{Policy: id, Actions: []Action{Warn}}, Finding: Finding{Kind: Fail, Message: "again"}},
			Step{Origin: Origin{Policy: id, Actions: []Action{Deny}}, Finding: Finding{Kind: Fail, Message: "m"}},
			Step{Origin: Origin{Policy: id}, Finding: Finding{Kind: Annotation, Key: "k", Value: fmt.Sprintf("%05d", i) + strings.Repeat("x", maxAnnotationBytes)}})
	}
	got := Fold(steps)
	if len(got.Denials) != maxCauses || got.Denied != maxWarnings+10 {
		t.Errorf("%d of %d denials are listed, want %d of %d", len(got.Denials), got.Denied, maxCauses, maxWarnings+10)
	}
	if len(got.Warnings) != maxWarnings {
		t.Errorf("%d warnings, want %d", len(got.Warnings), maxWarnings)
	}
	if bytes := len(got.AuditAnnotations["p/k"]); bytes > maxAnnotationsBytes+maxAnnotationBytes {
		t.Errorf("%d bytes of audit annotations, want about %d", bytes, maxAnnotationsBytes)
	}
	status := got.ReviewStatus()
	if want := "P 'p' denied request: m (and 1009 more: see causes for the first 100)"; status.Message != want || len(status.Details.Causes) != maxCauses {
		t.Errorf("got %q with %d causes, want %q with %d", status.Message, len(status.Details.Causes), want, maxCauses)
	}
}

// FuzzFold: one more denial never turns a denied request into an allowed one.
func FuzzFold(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		var steps []Step
		allowed := true
		for ; len(data) >= 3; data = data[3:] {
			step := Step{Origin: Origin{OnError: FailurePolicy(data[1])}, Finding: Finding{Kind: Kind(data[0])}}
			if data[2] > 0 {
				step.Actions = []Action{Action(data[2] - 1)}
			}
			steps = append(steps, step)
			now := Fold(steps).Allowed
			if now && !allowed {
				t.Fatalf("a further step turned a denial into an admission: %+v", steps)
			}
			allowed = now
		}
	})
}

// TestWarningsOfChanges: what a rule that has changed the object says is a warning.
func TestWarningsOfChanges(t *testing.T) {
	origin := Origin{Policy: PolicyID{Kind: "Policy", Namespace: "n", Name: "p"}, Mutates: true}
	got := Fold([]Step{
		{Origin: origin, Finding: Finding{Kind: Mutated}},
		{Origin: origin, Finding: Finding{Kind: Mutated, Message: "odd"}},
	})
	if want := []string{"Policy 'n/p': odd"}; !got.Allowed || !slices.Equal(got.Warnings, want) {
		t.Errorf("allowed: %t, with the warnings %q, want %q", got.Allowed, got.Warnings, want)
	}
}
