// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"runtime/debug"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// maxEvaluationBytes bounds the values of all rules of one evaluation.
const maxEvaluationBytes = 16 << 10

// untold stands in a trace until it is known what the asker may read.
const untold = "it could not be told what you may read"

// explanation is that of one evaluation of a policy. It is not safe for concurrent
// use.
type explanation struct {
	spec   *admissionregistrationv1.ValidatingAdmissionPolicySpec
	veils  veils
	purse  *purse
	tracer *tracer // nil when there are no values
	bound  bindings
	checks *checks
	clock  clock.PassiveClock
	room   int // bytes left for values

	// computed and anyVariable say what the variables of the policy may tell, once
	// that is known.
	computed    map[string]string
	anyVariable *string
}

// explain adds traces to the findings of a result: it evaluates what they are
// about once more and keeps what it sees. Whatever goes wrong with that leaves
// values out, or conceals, and does nothing else.
func (p *program) explain(ctx context.Context, g *given, result *validating.ValidateResult, findings []verdict.Finding) {
	for i := range findings {
		findings[i].Trace = &verdict.Trace{Concealed: untold}
	}
	defer contain(ctx)
	e, ctx, done := p.explanation(ctx, g)
	defer done()
	for i := range findings {
		finding := &findings[i]
		var r rule
		if i < len(result.Decisions) {
			r = validationOf(p.spec, finding)
			r.took = result.Decisions[i].Elapsed
		} else {
			r = annotationOf(p.spec, finding)
			r.took = result.AuditAnnotations[finding.Index].Elapsed
		}
		trace := e.rule(ctx, r)
		finding.Trace = &trace
	}
}

// explainConditions does the same for the finding of match conditions.
func (p *program) explainConditions(ctx context.Context, g *given, findings []verdict.Finding) {
	finding := &findings[0]
	finding.Trace = &verdict.Trace{Concealed: untold}
	defer contain(ctx)
	e, ctx, done := p.explanation(ctx, g)
	defer done()
	r := conditionsOf(p.spec, finding)
	trace := e.rule(ctx, r)
	finding.Trace = &trace
	if e.tracer == nil && e.overSources(ctx, r.evaluated) == "" {
		finding.Trace = nil // the time of the whole evaluation is all that is known
	}
}

// explanation returns what explains one evaluation until done is called, in a
// context that ends when the explanations of the request have taken long enough.
func (p *program) explanation(ctx context.Context, g *given) (e *explanation, within context.Context, done func()) {
	e = &explanation{spec: p.spec, veils: veilsOf(ctx, g), clock: p.tracing.clock, room: maxEvaluationBytes, computed: map[string]string{}}
	purse, err := request.Derive(g.in.Request, purseKey, newPurse)
	if err != nil { // unreachable: a purse can always be made
		return e, ctx, func() {}
	}
	e.purse = purse
	within, done = purse.within(ctx, e.clock)
	if within.Err() != nil {
		return e, within, done
	}
	tracer := purse.evaluation(p)
	if tracer == nil {
		return e, within, done
	}
	if e.bound, e.checks, err = g.bind(); err == nil {
		e.tracer = tracer
	}
	return e, within, done
}

// rule traces the expressions of a rule. Cost and time are those of the rule
// alone, with the variables that it reads; they would tell how long a value is
// that the asker may not read.
func (e *explanation) rule(ctx context.Context, r rule) (trace verdict.Trace) {
	trace.Concealed = e.overSources(ctx, r.telling)
	veiled := trace.Concealed != "" || e.overSources(ctx, r.evaluated) != ""
	if !veiled {
		trace.Took = r.took
	}
	if e.tracer == nil {
		return trace
	}
	defer contain(ctx)
	shown := collection{explanation: e}
	for i, source := range r.evaluated {
		plain, seeing := e.trace(ctx, source)
		if plain == nil {
			break
		}
		if i < r.counted && !veiled {
			trace.Cost += plain.cost
			if r.took == 0 {
				trace.Took += plain.took
			}
		}
		if seeing != nil {
			shown.add(ctx, seeing)
		}
	}
	trace.Values = shown.finish()
	return trace
}

// trace evaluates an expression twice: at first within its limits, and then with
// eyes open. It returns nil for what there is no room for.
func (e *explanation) trace(ctx context.Context, source string) (plain, seeing *run) {
	expression := e.tracer.expressions[source]
	left := e.purse.left()
	if left == 0 || expression == nil || ctx.Err() != nil || !expression.compile() {
		return nil, nil
	}
	plain = e.evaluate(ctx, expression, left, false)
	e.purse.spend(ruleCost + variableCost*uint64(len(e.spec.Variables)) + plain.charge())
	if plain.cutShort { // without its limits it could take any time
		return plain, nil
	}
	return plain, e.evaluate(ctx, expression, 0, true)
}

// contain keeps a panic of an explanation from reaching the findings.
func contain(ctx context.Context) {
	if cause := recover(); cause != nil {
		klog.FromContext(ctx).Error(nil, "Explaining a CEL policy panicked", "stack", string(debug.Stack()))
	}
}
