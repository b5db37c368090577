// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	corev1 "k8s.io/api/core/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/utils/clock"
)

// part is a group of expressions of a policy that see the same and have one budget,
// in the order in which they are evaluated. Messages go on with what validations
// have left of theirs.
type part uint8

const (
	conditions part = iota
	validations
	messages
	annotations
)

// evaluation evaluates the expressions of one policy for one request and one param.
// It is what they see. It is not safe for concurrent use.
type evaluation struct {
	ctx        context.Context //nolint:containedctx // A variable is asked for by name, in the middle of an expression.
	frame      *frame
	param      *param
	authorizer authorizer.UnconditionalAuthorizer // nil when nobody can tell
	clock      clock.PassiveClock                 // nil when nobody asks how long something took

	part      part
	variables variables
	// counting says that costs are counted. Otherwise it is known that no limit can
	// be reached.
	counting bool
	budget   int64
	spent    int64 // by variables, for the expression that has read them
	// brief says that not even the end of time has to be looked at.
	brief bool
	// bare says that objects are found as they are and not as CEL values, which saves
	// a value for each field on the way to one that is used.
	bare bool

	authorizers [2]ref.Val // nil until someone looks
	// decisions are those of the last evaluation in the frame, whose room is used
	// again.
	decisions []validating.PolicyDecision
}

var _ interpreter.Activation = (*evaluation)(nil)

// ResolveName implements interpreter.Activation; see newActivation in
// k8s.io/apiserver/pkg/admission/plugin/cel.
func (e *evaluation) ResolveName(name string) (any, bool) {
	switch name {
	case plugincel.ObjectVarName:
		return e.frame.version.object.as(e.bare), true
	case plugincel.OldObjectVarName:
		return e.frame.version.oldObject.as(e.bare), true
	case plugincel.ParamsVarName:
		return e.param.value.as(e.bare), true
	case plugincel.VariableVarName:
		return &e.variables, true
	case partsName:
		return &e.frame.parts, true
	case plugincel.RequestVarName:
		if e.part == conditions { // does not know the resource that has matched
			return e.frame.requestAs(e.frame.version.attributes.GetResource()), true
		}
		return e.frame.requestAs(e.frame.resource), true
	case plugincel.NamespaceVarName:
		if e.part == conditions {
			return types.NullValue, true
		}
		return e.frame.namespace.value(e.part == annotations), true
	case plugincel.AuthorizerVarName:
		return e.authorizerValue(0)
	case plugincel.RequestResourceAuthorizerVarName:
		return e.authorizerValue(1)
	}
	return nil, false
}

// authorizerValue returns the authorizer, or with 1 that for the resource of the
// request. Annotations may name it and are not given it.
func (e *evaluation) authorizerValue(i int) (any, bool) {
	if e.authorizer == nil || e.part == messages || e.part == annotations {
		return nil, false
	}
	if e.authorizers[i] == nil {
		attributes := e.frame.version.attributes
		user := attributes.GetUserInfo()
		strict := strictAuthorizer{e.authorizer}
		e.authorizers[0] = library.NewAuthorizerVal(user, strict)
		e.authorizers[1] = library.NewResourceAuthorizerVal(user, strict, attributes)
	}
	return e.authorizers[i], true
}

// Parent implements interpreter.Activation.
func (e *evaluation) Parent() interpreter.Activation { return nil }

// begin turns to the next part. Upstream computes variables again for each part,
// which shows only in what they cost and where the part is given something else.
func (e *evaluation) begin(next part, counting bool, budget int64) {
	if counting || e.counting {
		clear(e.variables.values)
	} else {
		e.variables.keepSteady()
	}
	e.part, e.counting, e.budget, e.spent = next, counting, budget, 0
}

// evaluate returns the evaluation of a policy in the frame, in the place of the one
// before.
func (f *frame) evaluate(ctx context.Context, p *program, namespace *corev1.Namespace, param *param, authorizer authorizer.UnconditionalAuthorizer) *evaluation {
	e := &f.evaluation
	*e = evaluation{ctx: ctx, frame: f, param: param, authorizer: authorizer, variables: variables{values: e.variables.values}, decisions: e.decisions}
	e.variables.start(&p.variables, e)
	f.namespace.set(namespace)
	return e
}

// decisionsFor returns so many empty decisions, valid until the next evaluation.
func (e *evaluation) decisionsFor(n int) []validating.PolicyDecision {
	if cap(e.decisions) < n {
		e.decisions = make([]validating.PolicyDecision, n)
	}
	e.decisions = e.decisions[:n]
	clear(e.decisions)
	return e.decisions
}

// outcome is what became of one expression. The zero value is that of none.
type outcome struct {
	value ref.Val
	err   error
	took  time.Duration
}

// evaluate follows evaluationActivation.Evaluate in
// k8s.io/apiserver/pkg/admission/plugin/cel: an error that it returns ends the whole
// part.
func (e *evaluation) evaluate(ctx context.Context, c *clause) (o outcome, err error) {
	switch {
	case c.none():
		return outcome{}, nil
	case c.fault != nil:
		return outcome{err: invalid(fmt.Sprintf("compilation error: %v", c.fault), c.fault)}, nil
	}
	var begin time.Time
	if e.clock != nil {
		begin = e.clock.Now()
	}
	if e.counting {
		err = e.count(ctx, c.expression, &o)
	} else {
		o.value, o.err = e.run(ctx, c.expression)
	}
	if e.clock != nil {
		o.took = e.clock.Since(begin)
	}
	if err != nil {
		return outcome{}, err
	}
	if o.err != nil {
		o.value, o.err = nil, invalid(fmt.Sprintf("expression '%v' resulted in error: %v", c.source, o.err), nil)
	}
	return o, nil
}

// run evaluates an expression without counting. What it computes to look something up
// has to be a CEL value: an error would show what else it is.
func (e *evaluation) run(ctx context.Context, x *expression) (ref.Val, error) {
	outer := e.bare
	e.bare = x.uses&indexes == 0
	value, err := x.evaluate(ctx, e, e.brief)
	e.bare = outer
	return value, err
}

// count evaluates an expression and takes what it costs from the budget, that of the
// variables that it is the first to read included. It fails when there is not
// enough.
func (e *evaluation) count(ctx context.Context, x *expression, o *outcome) error {
	program, err := x.program()
	if err != nil { // unreachable: the same expression has made a program before
		o.err = err
		return nil
	}
	value, details, err := program.ContextEval(ctx, e)
	o.value, o.err = value, err
	read := e.spent
	e.spent = 0
	if read > e.budget {
		return outOfBudget()
	}
	e.budget -= read
	cost := details.ActualCost()
	switch {
	case cost == nil: // unreachable: the program counts
		return invalid(fmt.Sprintf("runtime cost could not be calculated for expression: %v, no further expression will be run", x.source), apiservercel.ErrOutOfBudget)
	case *cost > math.MaxInt64 || int64(*cost) > e.budget:
		return outOfBudget()
	}
	e.budget -= int64(*cost)
	return nil
}

// variable computes a variable; see variableAccessor in
// k8s.io/apiserver/pkg/admission/plugin/cel.
func (e *evaluation) variable(d *definition) ref.Val {
	if d.fault != nil {
		return types.NewErr("composited variable %q fails to compile: %v", d.name, d.fault)
	}
	var value ref.Val
	var err error
	if e.counting {
		value, err = e.countVariable(e.ctx, d)
	} else {
		value, err = e.run(e.ctx, d.expression)
	}
	if err != nil {
		return types.NewErr("composited variable %q fails to evaluate: %v", d.name, err)
	}
	return value
}

func (e *evaluation) countVariable(ctx context.Context, d *definition) (ref.Val, error) {
	program, err := d.program()
	if err != nil { // unreachable: the same expression has made a program before
		return nil, err
	}
	value, details, err := program.ContextEval(ctx, e)
	cost := details.ActualCost()
	if cost == nil { // unreachable: the program counts
		return types.NewErr("unable to calculate cost of variable %q", d.name), nil
	}
	e.spent += int64(min(*cost, math.MaxInt64/2))
	return value, err
}

func invalid(detail string, cause error) error {
	return &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: detail, Cause: cause}
}

func outOfBudget() error {
	return invalid("validation failed due to running out of cost budget, no further validation rules will be run", apiservercel.ErrOutOfBudget)
}
