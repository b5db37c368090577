// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

func TestAllowedStatus(t *testing.T) {
	f := newFixture(t)
	f.answer.AuditAnnotations = map[string]string{"p/k": "v"}
	got := f.ask(t, asking)
	if !got.Allowed || got.Result != nil || len(got.Evaluations) != 0 {
		t.Errorf("got %+v, want an admission", got)
	}
	if got.AuditAnnotations["p/k"] != "v" {
		t.Errorf("got annotations %v, want the keys of the API server", got.AuditAnnotations)
	}
	object, ok := got.Object.Object.(*unstructured.Unstructured)
	if !ok || nameOf(object) != "web" {
		t.Errorf("got object %+v, want that of the request", got.Object)
	}
	if deleted := f.ask(t, "  request: {oldObject: "+deployment+"}"); deleted.Object != nil {
		t.Errorf("DELETE: got object %v, want none", deleted.Object)
	}
}

func TestDeniedStatus(t *testing.T) {
	tests := []struct{ name, spec, want string }{
		{"name of the object", asking, `deployments.apps "web" is forbidden: first`},
		{"name of the request", "  request: {name: web, object: " + deployment + "}", `deployments.apps "web" is forbidden: first`},
		{
			"generated name", "  request: {object: {apiVersion: apps/v1, kind: Deployment, metadata: {generateName: web-}}}",
			`deployments.apps "web-" is forbidden: first`,
		},
		{"no name", "  request: {object: {apiVersion: v1, kind: ConfigMap}}", `configmaps "Unknown" is forbidden: first`},
		{
			"no object", "  request: {operation: CONNECT, kind: {version: v1, kind: PodExecOptions}, resource: {version: v1, resource: pods}}",
			`pods "Unknown" is forbidden: first`,
		},
		{
			"resource of the original request",
			"  request: {requestKind: {group: extensions, version: v1, kind: Deployment}, requestResource: {group: extensions, version: v1, resource: deployments}, object: " + deployment + "}",
			`deployments.extensions "web" is forbidden: first`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.answer = verdict.Verdict{Denials: []verdict.Denial{{Message: "first"}, {Message: "second", Reason: metav1.StatusReasonForbidden}}}
			got := f.ask(t, test.spec)
			if got.Allowed || got.Result == nil {
				t.Fatalf("got %+v, want a denial", got)
			}
			if got.Result.Message != test.want || got.Result.Code != 422 || got.Result.Reason != metav1.StatusReasonInvalid {
				t.Errorf("got result %+v, want message %s", got.Result, test.want)
			}
			if causes := got.Result.Details.Causes; len(causes) != 2 || causes[0].Message != "first" || causes[1].Message != "second" {
				t.Errorf("got causes %+v, want both denials", causes)
			}
		})
	}
}

func TestZeroVerdictDenies(t *testing.T) {
	f := newFixture(t)
	f.answer = verdict.Verdict{}
	if got := f.ask(t, asking); got.Allowed || got.Result == nil {
		t.Errorf("got %+v, want a denial", got)
	}
}

func TestEvaluations(t *testing.T) {
	origin := verdict.Origin{
		Policy:  verdict.PolicyID{Kind: "K", Namespace: "ns", Name: "p"},
		Binding: "b",
		Param:   &verdict.ParamRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "prod", Name: "limits"},
	}
	finding := verdict.Finding{Rule: "validations[2]", Expression: "false", Message: "m"}
	f := newFixture(t)
	f.answer.Evaluations = []verdict.Evaluation{{Origin: &origin, Finding: &finding, Outcome: verdict.Denied}}
	want := policyapi.Evaluation{
		Policy:     policyapi.PolicyReference{Kind: "K", Namespace: "ns", Name: "p"},
		Binding:    "b",
		Param:      &policyapi.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "prod", Name: "limits"},
		Phase:      "Validate",
		Outcome:    policyapi.OutcomeDenied,
		Rule:       "validations[2]",
		Expression: "false",
		Message:    "m",
	}
	got := f.ask(t, asking).Evaluations
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %+v, want %+v", got, want)
	}

	outcomes := map[verdict.Outcome]policyapi.EvaluationOutcome{
		verdict.Failed:  policyapi.OutcomeError,
		verdict.Passed:  policyapi.OutcomeAllowed,
		verdict.Denied:  policyapi.OutcomeDenied,
		verdict.Warned:  policyapi.OutcomeWarned,
		verdict.Audited: policyapi.OutcomeAudited,
		verdict.Skipped: policyapi.OutcomeSkipped,
		200:             policyapi.OutcomeError,
	}
	for in, want := range outcomes {
		f.answer.Evaluations = []verdict.Evaluation{{Origin: &verdict.Origin{}, Finding: &verdict.Finding{}, Outcome: in}}
		if got := f.ask(t, asking).Evaluations[0]; got.Outcome != want || got.Param != nil {
			t.Errorf("outcome %d: got %+v, want %s and no param", in, got, want)
		}
	}
}

// TestConcealedMessages: whoever sends the request is told denials and warnings,
// and nothing else that they may not read; the time of a rule tells it no more
// than its message.
func TestConcealedMessages(t *testing.T) {
	f := newFixture(t)
	finding := verdict.Finding{Rule: "validations[0]", Message: "m", Trace: &verdict.Trace{Concealed: "Secret ns/x: you may not get it"}}
	for outcome := verdict.Failed; outcome <= verdict.Unmatched; outcome++ {
		f.answer.Evaluations = []verdict.Evaluation{{Origin: &verdict.Origin{}, Finding: &finding, Took: time.Second, Outcome: outcome}}
		want := "(concealed: Secret ns/x: you may not get it)"
		if outcome == verdict.Denied || outcome == verdict.Warned {
			want = "m"
		}
		got := f.ask(t, asking).Evaluations[0]
		if got.Message+got.WhyNot != want || got.DurationMicroseconds != 0 {
			t.Errorf("outcome %d: got %+v, want %q", outcome, got, want)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	f := newFixture(t)
	f.err = errors.New("not yet ready")
	if _, err := f.create(t.Context(), t, asking); !apierrors.IsServiceUnavailable(err) || err.Error() != "not yet ready" {
		t.Errorf("not ready: got error %v", err)
	}
	if _, err := f.door.Create(t.Context(), &policyapi.ValidatingAdmissionPolicy{}, nil, nil); !apierrors.IsBadRequest(err) {
		t.Errorf("another kind: got error %v", err)
	}
	refusal := errors.New("refused")
	refuse := func(context.Context, runtime.Object) error { return refusal }
	if _, err := f.door.Create(t.Context(), f.preview(t, asking), refuse, nil); !errors.Is(err, refusal) {
		t.Errorf("refused by admission: got error %v", err)
	}
}

func TestResource(t *testing.T) {
	f := newFixture(t)
	if _, ok := f.door.New().(*policyapi.AdmissionPreview); !ok || f.door.NamespaceScoped() || f.door.GetSingularName() != "admissionpreview" {
		t.Errorf("got %T, namespaced %v, singular %q", f.door.New(), f.door.NamespaceScoped(), f.door.GetSingularName())
	}
	f.door.Destroy()
}
