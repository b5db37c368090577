// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

func configMap(t *testing.T) policy.Input {
	t.Helper()
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	in := policy.Input{
		Request: request.New(request.Fields{
			UID: "u", Name: "c", Namespace: "default", Operation: admission.Create,
			Kind:     schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Object:   &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "b"}}},
		}),
		View:    view,
		Explain: &policy.Explain{MayRead: func(context.Context, verdict.ParamRef) bool { return true }},
	}
	in.Matched = cluster.Equivalent{Resource: in.Request.Resource, Kind: in.Request.Kind}
	return in
}

// TestExplanationsLeaveTime: all explanations of a request have a quarter of its
// time together, so that they do not make the verdict late.
func TestExplanationsLeaveTime(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	ctx, cancel := context.WithDeadline(t.Context(), clock.Now().Add(40*time.Minute))
	defer cancel()
	p, errs := newCompiler().compile(&admissionregistrationv1.ValidatingAdmissionPolicySpec{
		Validations: []admissionregistrationv1.Validation{{Expression: "object.data.a == 'c'"}},
	})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	in := configMap(t)
	purse, err := request.Derive(in.Request, purseKey, newPurse)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"b"`, `"b"`, ""} {
		findings := p.evaluate(ctx, in)
		if len(findings) != 1 || findings[0].Kind != verdict.Fail || findings[0].Trace == nil || findings[0].Trace.Took <= 0 {
			t.Fatalf("after %d times 5 minutes: %+v", i, findings)
		}
		if got := string(findings[0].Trace.Values["object.data.a"]); got != want {
			t.Errorf("after %d times 5 minutes: got %s, want %s", i, got, want)
		}
		_, done := purse.within(ctx, clock)
		clock.SetTime(clock.Now().Add(5 * time.Minute))
		done()
	}
	if ctx.Err() != nil {
		t.Error("the request has no time left")
	}
}

// TestNothingIsComputedFromItself: the compiler refuses such variables, and what
// explains them must not depend on that.
func TestNothingIsComputedFromItself(t *testing.T) {
	for name, circle := range map[string][2]string{
		"itself":     {"dyn(variables.a)", "2"},
		"each other": {"dyn(variables.b)", "dyn(variables.a)"},
	} {
		spec := &admissionregistrationv1.ValidatingAdmissionPolicySpec{
			Variables:   []admissionregistrationv1.Variable{{Name: "a", Expression: "dyn(1)"}, {Name: "b", Expression: "dyn(2)"}},
			Validations: []admissionregistrationv1.Validation{{Expression: "variables.a == 3"}},
		}
		p, errs := newCompiler().compile(spec)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		for i := range spec.Variables { // for the tracer, which compiles later
			spec.Variables[i].Expression = circle[i]
		}
		in := configMap(t)
		findings := p.evaluate(t.Context(), in)
		if got := string(findings[0].Trace.Values["variables.a"]); !strings.Contains(got, errCircle.Error()) {
			t.Errorf("%s: got %s", name, got)
		}
		in.Explain = &policy.Explain{} // everything is concealed that is asked for
		in.Param = in.Request.Object
		findings = p.evaluate(t.Context(), in)
		if got := string(findings[0].Trace.Values["variables.a"]); !strings.Contains(got, "you may not get it") {
			t.Errorf("%s: got %s for what may be computed from anything", name, got)
		}
	}
}

// TestFaultyPoliciesAreNotTraced: what has any fault is not evaluated again.
func TestFaultyPoliciesAreNotTraced(t *testing.T) {
	p, errs := newCompiler().compile(&admissionregistrationv1.ValidatingAdmissionPolicySpec{
		Variables:   []admissionregistrationv1.Variable{{Name: "a", Expression: "1 +"}},
		Validations: []admissionregistrationv1.Validation{{Expression: "object.data.a == 'c'"}},
	})
	findings := p.evaluate(t.Context(), configMap(t))
	if len(errs) == 0 || !p.faulty || len(findings) != 1 || findings[0].Trace == nil || findings[0].Trace.Values != nil {
		t.Errorf("got errors %v and %+v", errs, findings)
	}
}

// TestCheckCost: what is taken for the cost of a question to the authorizer is
// what upstream counts.
func TestCheckCost(t *testing.T) {
	p, errs := newCompiler().compile(&admissionregistrationv1.ValidatingAdmissionPolicySpec{
		Validations: []admissionregistrationv1.Validation{
			{Expression: "authorizer.path('/a').check('get').allowed()"},
			{Expression: "authorizer.path('/a').check('get').allowed() || authorizer.path('/b').check('get').allowed()"},
		},
	})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	findings := p.evaluate(t.Context(), configMap(t))
	one, two := findings[0].Trace.Cost, findings[1].Trace.Cost
	if one < checkCost || one > checkCost+20 || two < 2*checkCost || two > 2*checkCost+40 {
		t.Errorf("one question costs %d and two %d, want %d each", one, two, checkCost)
	}
}
