// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// What explanations may show and cost.
const (
	maxRuleValues      = 32
	maxEvaluationBytes = 16 << 10 // of the values of all rules of one evaluation
	// maxExplained bounds the evaluations of one request that are explained with
	// values. The others only say how long they took.
	maxExplained = 1_000
	// maxExplanationCost bounds what the explanations of one request cost.
	maxExplanationCost = 5 * celconfig.RuntimeCELCostBudget
)

// allowance is what is left for the explanations of one request.
type allowance struct {
	mu          sync.Mutex
	evaluations int
	cost        uint64
}

var allowanceKey = request.NewKey[*allowance]("cel explanations")

func newAllowance(*request.Request) (*allowance, error) {
	return &allowance{evaluations: maxExplained, cost: maxExplanationCost}, nil
}

// evaluation takes one evaluation.
func (a *allowance) evaluation() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.evaluations == 0 || a.cost == 0 {
		return false
	}
	a.evaluations--
	return true
}

// spend returns false when nothing is left.
func (a *allowance) spend(cost uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cost -= min(cost, a.cost)
	return a.cost > 0
}

// explanation is that of one evaluation of a policy.
type explanation struct {
	tracer    *tracer
	clock     clock.PassiveClock
	bound     bindings
	secrets   secrets
	allowance *allowance
	room      int // bytes left for values
	spent     bool
}

// explain adds traces to the findings of a result: it evaluates what they are
// about once more and keeps what it sees. Whatever goes wrong with that leaves
// values out and nothing else.
func (p *program) explain(ctx context.Context, g *given, result *validating.ValidateResult, findings []verdict.Finding) {
	for i := range findings {
		findings[i].Trace = &verdict.Trace{Took: elapsed(result, i, findings[i].Index)}
	}
	defer contain(ctx)
	e := p.explanation(ctx, g)
	if e == nil {
		return
	}
	for i := range findings {
		finding := &findings[i]
		var expressions []*traced
		switch {
		case i >= len(result.Decisions):
			expressions = append(expressions, &e.tracer.annotations[finding.Index])
		case finding.Rule == "": // about the policy as a whole
			return
		default:
			expressions = append(expressions, &e.tracer.validations[finding.Index])
			if message := &e.tracer.messages[finding.Index]; finding.Kind == verdict.Fail && message.source != "" {
				expressions = append(expressions, message)
			}
		}
		trace := e.rule(ctx, nil, expressions)
		finding.Trace.Cost, finding.Trace.Values = trace.Cost, trace.Values
	}
}

// elapsed returns the time of finding i, which is that of the rule at index.
func elapsed(result *validating.ValidateResult, i, index int) time.Duration {
	if i < len(result.Decisions) {
		return result.Decisions[i].Elapsed
	}
	return result.AuditAnnotations[index].Elapsed
}

// explainConditions does the same for the finding of match conditions: the one
// that is false, or all of them when some fail.
func (p *program) explainConditions(ctx context.Context, g *given, findings []verdict.Finding) {
	defer contain(ctx)
	e := p.explanation(ctx, g)
	if e == nil {
		return
	}
	finding := &findings[0]
	conditions := e.tracer.conditions
	if finding.Kind == verdict.NotMatched {
		conditions = conditions[finding.Index : finding.Index+1]
	}
	trace := &verdict.Trace{}
	finding.Trace = trace
	for i := range conditions {
		one := e.rule(ctx, trace.Values, []*traced{&conditions[i]})
		trace.Cost, trace.Took, trace.Values = trace.Cost+one.Cost, trace.Took+one.Took, one.Values
	}
}

// explanation returns nil when the request has had its share.
func (p *program) explanation(ctx context.Context, g *given) *explanation {
	allowance, err := request.Derive(g.in.Request, allowanceKey, newAllowance)
	if err != nil || !allowance.evaluation() {
		return nil
	}
	tracer, err := p.tracing.tracer(p)
	if err != nil {
		return nil
	}
	bound, err := g.bind()
	if err != nil {
		return nil
	}
	return &explanation{
		tracer: tracer, clock: p.tracing.clock, bound: bound, secrets: secretsOf(ctx, g.in),
		allowance: allowance, room: maxEvaluationBytes,
	}
}

// rule traces expressions, the first of which is the rule itself, and adds to the
// given values. Cost and time are those of the rule alone, with the variables
// that it reads.
func (e *explanation) rule(ctx context.Context, values map[string]json.RawMessage, expressions []*traced) (trace verdict.Trace) {
	defer contain(ctx)
	shown := collection{explanation: e, values: values}
	for i, expression := range expressions {
		if e.spent || ctx.Err() != nil || !expression.compile(e.tracer.env) {
			break
		}
		begin := e.clock.Now()
		plain := e.tracer.evaluate(ctx, expression, e.bound, false)
		if i == 0 {
			trace.Cost, trace.Took = plain.cost, e.clock.Since(begin)
		}
		e.spent = !e.allowance.spend(plain.cost)
		if plain.cutShort { // without its limits it could take any time
			continue
		}
		shown.add(e.tracer.evaluate(ctx, expression, e.bound, true))
	}
	trace.Values = shown.finish()
	return trace
}

// collection collects values within their bounds.
type collection struct {
	*explanation
	values map[string]json.RawMessage
	more   int
}

const moreKey = "..."

// add adds what a run has seen: the leaves of the expression, and then those of
// the variables that it read.
func (c *collection) add(r *run) {
	for _, sight := range r.seen {
		c.more += sight.expression.tooLong
		for i := range sight.expression.leaves {
			leaf := &sight.expression.leaves[i]
			if _, again := c.values[leaf.text]; again {
				continue
			}
			if value, ok := sight.value(leaf); ok {
				c.put(leaf, value)
			}
		}
	}
}

// value returns false for what was not looked at.
func (s *sight) value(l *leaf) (ref.Val, bool) {
	for _, id := range l.ids {
		if value, ok := s.state.Value(id); ok && value != nil {
			return value, true
		}
	}
	return nil, false
}

func (c *collection) put(l *leaf, value ref.Val) {
	if len(c.values) == maxRuleValues {
		c.more++
		return
	}
	text := c.secrets.over(l.reads, c.tracer.readsOf)
	if text == nil {
		text = valueJSON(value)
	}
	if len(l.text)+len(text) > c.room {
		c.more++
		return
	}
	c.room -= len(l.text) + len(text)
	if c.values == nil {
		c.values = map[string]json.RawMessage{}
	}
	c.values[l.text] = text
}

func (c *collection) finish() map[string]json.RawMessage {
	if c.more > 0 {
		if c.values == nil {
			c.values = map[string]json.RawMessage{}
		}
		c.values[moreKey] = stringJSON(fmt.Sprintf("%d more", c.more), maxValueBytes)
	}
	return c.values
}

// contain keeps a panic of an explanation from reaching the findings.
func contain(ctx context.Context) {
	if cause := recover(); cause != nil {
		klog.FromContext(ctx).Error(nil, "Explaining a CEL policy panicked", "stack", string(debug.Stack()))
	}
}
