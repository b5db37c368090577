// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// TestInterruption: an evaluation stops when its time is over, and says so as
// upstream does.
func TestInterruption(t *testing.T) {
	spec := specOf([][2]string{{"slow", "lists.range(1000).all(i, i >= 0)"}}, "lists.range(1000).all(i, i >= 0)")
	spec.Validations = append(spec.Validations, admissionregistrationv1.Validation{Expression: "variables.slow"})
	spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "few", Expression: "lists.range(10).all(i, i >= 0)"}}
	in := benchInput(t)()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("it is late"))
	want := compileUpstream(t, spec).judge(ctx, in, attributesOf(t, in), nil)
	if len(want.Result.Decisions) != 2 || want.Result.Decisions[0].Message != "expression 'lists.range(1000).all(i, i >= 0)' resulted in error: operation interrupted: it is late" {
		t.Fatalf("upstream is not interrupted: %+v", want)
	}
	p := compileOne(t, newCompiler(), spec)
	for way, fit := range map[string]parts{"counting": 0, "not counting": everything()} {
		if diff := cmp.Diff(want, p.judgeWithin(ctx, t, in, fit), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-upstream +ours):\n%s", way, diff)
		}
	}
}

// TestConcurrentEvaluation judges one request by many at once.
func TestConcurrentEvaluation(t *testing.T) {
	spec := specOf([][2]string{{"names", "object.spec.template.spec.containers.map(c, c.name)"}, {"user", "request.name"}},
		"variables.names.size() == 2 && variables.user == 'web' && request.dryRun == false && namespaceObject.metadata.labels.size() == 1")
	spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: "request.resource.resource == 'deployments'"}}
	p := compileOne(t, newCompiler(), spec)
	input := benchInput(t)
	for range 20 {
		in := input()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 5 {
					if got := p.evaluate(t.Context(), in); len(got) != 1 || got[0].Kind != verdict.Pass {
						t.Errorf("got %+v", got)
					}
				}
			})
		}
		all.Wait()
	}
}

// TestFit: costs are counted where a limit may be reached, and nowhere else.
func TestFit(t *testing.T) {
	in := benchInput(t)()
	everyone := "authorizer.path('/').check('get').allowed()"
	tests := []struct {
		name string
		spec *admissionregistrationv1.ValidatingAdmissionPolicySpec
		want parts
	}{
		{"usual", uniqueSpec(1), everything() | brief},
		{"nothing", specOf(nil, "true"), everything() | brief},
		{"an authorizer", specOf(nil, everyone), parts(0).with(conditions).with(annotations) | brief},
		{"a variable with an authorizer", specOf([][2]string{{"a", everyone}}, "variables.a"), parts(0).with(conditions).with(annotations) | brief},
		{"such a variable that nobody reads", specOf([][2]string{{"a", everyone}, {"b", "1"}}, "variables.b == 1"), everything() | brief},
		{"above the limit of a call", specOf(nil, "lists.range(2000).all(i, lists.range(2000).all(j, i + j >= 0))"), parts(0).with(conditions).with(annotations) | brief},
		{"a name that is defined twice", specOf([][2]string{{"a", "1"}, {"a", "2"}}, "variables.a == 2"), parts(0).with(conditions).with(annotations) | brief},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := compileOne(t, newCompiler(), test.spec)
			sizes := p.sizesOf(t, in)
			for range 2 { // once learnt, once known
				if got := p.fit(sizes); got != test.want {
					t.Errorf("fitting parts %b, want %b", got, test.want)
				}
			}
		})
	}
}

// TestBudget: a budget is exceeded where upstream's is, to the unit, by an expression
// and by the variables that it is the first to read.
func TestBudget(t *testing.T) {
	spec := specOf([][2]string{{"few", "object.spec.template.spec.containers.map(c, c.name)"}, {"fewer", "variables.few.filter(n, n != 'x')"}, {"user", "request.name"}},
		"variables.fewer.size() > 0")
	for _, expression := range []string{"variables.user == 'web'", "variables.few.size() > 0 && variables.fewer.size() > 1", "object.absent == 1", "variables.user != 'y'"} {
		spec.Validations = append(spec.Validations, admissionregistrationv1.Validation{Expression: expression})
	}
	in := benchInput(t)()
	upstream := upstreamValidations(t, spec, in)
	p := compileOne(t, newCompiler(), spec)
	all := int64(upstreamCost(t, spec, in))
	if all < 20 {
		t.Fatalf("upstream counts %d units, and there is nothing to compare", all)
	}
	for budget := range all + 2 {
		wantLeft, wantErr := upstream(budget)
		left, err := p.validationsWithin(t, in, budget)
		if left != wantLeft || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("of %d units: %d are left, %v; upstream: %d, %v", budget, left, err, wantLeft, wantErr)
		}
	}
}

// validationsWithin evaluates the validations and returns what is left of a budget.
func (p *program) validationsWithin(t *testing.T, in policy.Input, budget int64) (left int64, err error) {
	t.Helper()
	shared, version := versionOf(t, in)
	frame := version.take(in.Matched.Resource)
	defer version.put(frame)
	e := frame.evaluate(t.Context(), p, nil, shared.param(in.Param), in.View.Authorizer())
	e.begin(validations, true, budget)
	for i := range p.validations {
		if _, err := e.evaluate(t.Context(), &p.validations[i]); err != nil {
			return -1, err
		}
	}
	return e.budget, nil
}

// TestRefused: an audit annotation that turns out to be no text is no error that a
// failurePolicy could ignore, however many there are.
func TestRefused(t *testing.T) {
	spec := specOf([][2]string{{"a", "'x'"}, {"b", "variables.a"}, {"a", "1"}}, "true")
	for i := range 40 {
		spec.AuditAnnotations = append(spec.AuditAnnotations, admissionregistrationv1.AuditAnnotation{Key: fmt.Sprint("k", i), ValueExpression: "variables.b"})
	}
	findings := compileOne(t, newCompiler(), spec).evaluate(t.Context(), benchInput(t)())
	if len(findings) != 41 {
		t.Fatalf("got %d findings, want 41", len(findings))
	}
	for i, finding := range findings[1:] {
		if finding.Kind != verdict.Refused || !strings.Contains(finding.Message, "unsupported return type: int") {
			t.Errorf("annotation %d: got %+v, want it refused", i, finding)
		}
	}
}
