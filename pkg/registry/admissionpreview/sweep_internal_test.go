// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/rights"
)

// pods is a view that has nothing but the given objects. It reads them in pages, each
// with so many bytes, and does not know how many there are beyond a page.
type pods struct {
	cluster.View
	objects []*unstructured.Unstructured
	err     error // after the objects
	page    int   // 0 for a page of all
	bytes   int
	visited int
}

func (p *pods) Walk(ctx context.Context, _ cluster.Selection, visit cluster.Visit) error {
	for i, object := range p.objects {
		one := cluster.Visited{Object: object, Bytes: p.bytes, Left: len(p.objects) - i - 1}
		if p.page > 0 {
			if i%p.page == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			page := i / p.page * p.page
			one.Left, one.More = min(page+p.page, len(p.objects))-i-1, page+p.page < len(p.objects)
		}
		p.visited++
		if more, err := visit(one); err != nil || !more {
			return err
		}
	}
	return p.err
}

func (*pods) Mapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

type judgeFunc func(trial chain.Trial) (verdict.Verdict, error)

func (f judgeFunc) Try(_ context.Context, trial chain.Trial) (verdict.Verdict, error) {
	return f(trial)
}

func newPods(count int) *pods {
	view := &pods{}
	for i := range count {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
		object.SetNamespace("a")
		object.SetName(fmt.Sprintf("p%02d", i))
		view.objects = append(view.objects, object)
	}
	return view
}

func podSelection(limit int) selection {
	mapping := &meta.RESTMapping{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Scope: meta.RESTScopeNamespace,
	}
	return selection{mapping: mapping, selector: labels.Everything(), limit: limit, operation: admission.Create}
}

func anybody() caller {
	allow := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})
	return caller{rights.Caller{User: &user.DefaultInfo{Name: "jane"}, Authorizer: allow}}
}

func TestSweep(t *testing.T) {
	allow := func(chain.Trial) (verdict.Verdict, error) { return verdict.Allow(), nil }
	tests := []struct {
		name  string
		asker caller
		view  *pods
		judge judgeFunc
		want  string // judged, and whether there are more; or the error
	}{
		{"all", anybody(), newPods(3), allow, "3 judged, 3 allowed, truncated false"},
		{"more than the limit", anybody(), newPods(9), allow, "4 judged, 4 allowed, truncated true"},
		{"the zero verdict", anybody(), newPods(1), func(chain.Trial) (verdict.Verdict, error) { return verdict.Verdict{}, nil }, "1 judged, 0 allowed, truncated false"},
		{"no verdict", anybody(), newPods(2), func(chain.Trial) (verdict.Verdict, error) { return verdict.Allow(), verdict.ErrTooManyEvaluations }, "2 judged, 0 allowed, truncated false"},
		{"no policies yet", anybody(), newPods(2), func(chain.Trial) (verdict.Verdict, error) { return verdict.Allow(), chain.ErrNotReady }, "ServiceUnavailable: not yet ready"},
		{"no list", anybody(), &pods{err: errors.New("cut off")}, allow, "ServiceUnavailable: the existing pods cannot be listed: cut off"},
		{"nobody asks", caller{}, newPods(2), allow, "InternalError: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := sweep{judge: test.judge, trial: chain.Trial{View: test.view}, asker: test.asker, failures: 2}
			tally, err := s.run(t.Context(), podSelection(4))
			if err != nil {
				if reason, message, _ := strings.Cut(test.want, ": "); string(apierrors.ReasonForError(err)) != reason || !strings.Contains(err.Error(), message) {
					t.Errorf("got %v, want %s", err, test.want)
				}
				return
			}
			if got := fmt.Sprintf("%d judged, %d allowed, truncated %v", tally.judged(), tally.allowed(), tally.truncated); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if test.view.visited > 5 {
				t.Errorf("asked for %d objects, want no more than one beyond the limit", test.view.visited)
			}
		})
	}
}

// TestSweepEnds: what is not judged is counted as far as it is known, and nobody takes
// it for judged.
func TestSweepEnds(t *testing.T) {
	tests := []struct {
		name   string
		view   *pods
		within int // objects, then the time is over; 0 for no end
		want   string
	}{
		{"of large objects", &pods{bytes: 30}, 0, "4 judged, 4 of 8 remain, truncated true; 4 more were not judged, for these are large"},
		{"of large objects, counted in part", &pods{bytes: 30, page: 5}, 0, "4 judged, 1 of 8 remain, truncated true; at least 1 more were not judged, for these are large"},
		{"of time", &pods{}, 3, "3 judged, 5 of 8 remain, truncated true; 5 more were not judged in time"},
		{"of time, between pages", &pods{page: 3}, 3, "3 judged, 1 of 8 remain, truncated true; at least 1 more were not judged in time"},
		{"of time, in a page", &pods{page: 3}, 4, "4 judged, 2 of 8 remain, truncated true; at least 2 more were not judged in time"},
		{"at the limit, where the page ends", &pods{page: 4}, 8, "8 judged, 0 of 8 remain, truncated true"},
		{"at the limit", &pods{page: 5}, 0, "8 judged, 0 of 8 remain, truncated true"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			test.view.objects = newPods(12).objects
			judged := 0
			judge := judgeFunc(func(chain.Trial) (verdict.Verdict, error) {
				if judged++; judged == test.within {
					cancel()
				}
				return verdict.Allow(), nil
			})
			what := podSelection(8)
			what.bytes = 100
			s := sweep{judge: judge, trial: chain.Trial{View: test.view}, asker: anybody(), failures: 2}
			tally, err := s.run(ctx, what)
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%d judged, %d of %d remain, truncated %v", tally.judged(), tally.remaining, what.limit, tally.truncated)
			if _, remain, found := strings.Cut(tally.line(what), ";"); found {
				got += ";" + remain
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if status := objectsStatus(what, tally); status.Allowed != (tally.remaining == 0) {
				t.Errorf("allowed is %v", status.Allowed)
			}
		})
	}
	// An error of the cluster is none of time.
	view := newPods(2)
	view.err = errors.New("cut off")
	s := sweep{judge: judgeFunc(func(chain.Trial) (verdict.Verdict, error) { return verdict.Allow(), nil }), trial: chain.Trial{View: view}, asker: anybody()}
	if _, err := s.run(t.Context(), podSelection(4)); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v, want that the objects cannot be listed", err)
	}
}

// TestKeptObjectsAreBounded: few objects are kept to be explained, the gravest first, and
// fewer when they are large.
func TestKeptObjectsAreBounded(t *testing.T) {
	denial, warning := verdict.Verdict{}, verdict.Fold([]verdict.Step{{
		Origin: verdict.Origin{Actions: []verdict.Action{verdict.Warn}}, Finding: verdict.Finding{Kind: verdict.Fail},
	}})
	objects := newPods(9).objects
	tally := tally{room: 4}
	const large = maxHeldBytes/2 - 1
	for i, object := range objects {
		answer := &warning
		if i >= 6 {
			answer = &denial
		}
		tally.add(object, large, answer, nil)
	}
	var got []string
	for _, kept := range tally.kept() {
		got = append(got, fmt.Sprint(kept.name, " ", kept.object != nil))
	}
	if want := "p06 false, p07 false, p08 true, p00 true"; strings.Join(got, ", ") != want || tally.held != 2*large {
		t.Errorf("got %s and %d bytes, want %s", strings.Join(got, ", "), tally.held, want)
	}
}

// TestUnexplainedTexts: without an explanation it is not known which texts are to be
// concealed, except those that whoever sends the object is told.
func TestUnexplainedTexts(t *testing.T) {
	origin := verdict.Origin{Policy: verdict.PolicyID{Kind: "P", Name: "p"}, Actions: []verdict.Action{verdict.Audit}}
	denying := origin
	denying.Actions = []verdict.Action{verdict.Deny}
	judge := judgeFunc(func(trial chain.Trial) (verdict.Verdict, error) {
		if trial.Explain != nil {
			return verdict.Verdict{}, chain.ErrNoTimeLeft
		}
		steps := []verdict.Step{{Origin: origin, Finding: verdict.Finding{Kind: verdict.Fail, Message: "secret"}}}
		if trial.Request.Name == "p00" {
			steps = append(steps, verdict.Step{Origin: denying, Finding: verdict.Finding{Kind: verdict.Fail, Message: "told"}})
		}
		return verdict.Fold(steps), nil
	})
	s := sweep{judge: judge, trial: chain.Trial{View: newPods(2)}, asker: anybody(), failures: 2}
	tally, err := s.run(t.Context(), podSelection(4))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, kept := range tally.kept() {
		got = append(got, kept.message)
		for i := range kept.evaluations {
			got = append(got, string(kept.evaluations[i].Outcome)+" "+kept.evaluations[i].Message)
		}
	}
	if want := "P 'p' denied request: told|Denied told|Audited ||Audited "; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// TestFailureIsBounded: one object does not fill the answer.
func TestFailureIsBounded(t *testing.T) {
	var steps []verdict.Step
	for range 30 {
		steps = append(steps, verdict.Step{Finding: verdict.Finding{Kind: verdict.Fail, Message: strings.Repeat("é", 20_000), Expression: strings.Repeat("x", 20_000)}})
	}
	answer := verdict.Fold(steps)
	kept := failure{}
	kept.describe(&answer)
	total := 0
	for i := range kept.evaluations {
		total += size(&kept.evaluations[i])
	}
	if n := len(kept.evaluations); n == 0 || n > maxFailureEvaluations || total > maxFailureBytes {
		t.Errorf("%d evaluations of %d bytes are listed", n, total)
	}
	if len([]rune(kept.message)) > maxFailureText {
		t.Errorf("the message has %d characters", len([]rune(kept.message)))
	}
	if kept.evaluations[0].Outcome != policyapi.OutcomeDenied {
		t.Errorf("the first is %s", kept.evaluations[0].Outcome)
	}
}

// TestLine: what is not judged is never left out.
func TestLine(t *testing.T) {
	tests := []struct {
		tally tally
		want  string
	}{
		{tally{}, ""},
		{tally{counts: [gradePassed + 1]int{gradePassed: 2}}, "none of 2 existing pods would be denied"},
		{tally{counts: [gradePassed + 1]int{gradePassed: 2}, remaining: 3}, "none of 2 existing pods would be denied; 3 more were not judged in time"},
		{tally{remaining: 3}, "3 existing pods were not judged in time"},
		{tally{counts: [gradePassed + 1]int{gradePassed: 2}, truncated: true}, "none of the first 2 existing pods would be denied"},
		{
			tally{counts: [gradePassed + 1]int{gradeDenied: 1, gradeError: 2, gradeWarned: 3, gradeAudited: 4, gradeIgnored: 5}},
			"1 of 15 existing pods would be denied, 2 would be denied because a policy cannot be judged, 3 would get a warning, " +
				"4 would be noted in the audit log, 5 cannot be judged, which failurePolicy Ignore lets pass",
		},
	}
	for _, test := range tests {
		if got := test.tally.line(podSelection(10)); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
