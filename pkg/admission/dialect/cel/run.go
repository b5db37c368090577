// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/lazy"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

var (
	errNotCompiled = errors.New("the expression does not compile")
	errCircle      = errors.New("it is computed from itself")
	errCutShort    = errors.New("explaining it costs too much")
)

// given is what the expressions of one evaluation are given.
type given struct {
	in         policy.Input
	resource   schema.GroupVersionResource // that request.resource names
	attributes *admission.VersionedAttributes
	param      runtime.Object
	namespace  *corev1.Namespace
	authorizer authorizer.UnconditionalAuthorizer
}

// checks counts the questions to an authorizer.
type checks struct {
	strictAuthorizer
	n uint64
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (c *checks) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	c.n++
	return c.strictAuthorizer.Authorize(ctx, a)
}

// bindings are the values of the variables that an environment declares.
type bindings map[string]any

var _ cel.Activation = bindings(nil)

// ResolveName implements cel.Activation.
func (b bindings) ResolveName(name string) (any, bool) {
	value, ok := b[name]
	return value, ok
}

// Parent implements cel.Activation.
func (b bindings) Parent() cel.Activation { return nil }

// bind returns the values that upstream's evaluators bind; see newActivation in
// k8s.io/apiserver/pkg/admission/plugin/cel, and counts what they ask the
// authorizer. They are not safe for concurrent use.
func (g *given) bind() (bindings, *checks, error) {
	object, err := g.attributes.VersionedObject.CELValue()
	if err != nil {
		return nil, nil, err
	}
	oldObject, err := g.attributes.VersionedOldObject.CELValue()
	if err != nil {
		return nil, nil, err
	}
	request := plugincel.CreateAdmissionRequest(g.attributes.Attributes,
		metav1.GroupVersionResource(g.resource), metav1.GroupVersionKind(g.attributes.VersionedKind))
	bound := bindings{
		plugincel.ObjectVarName:    object,
		plugincel.OldObjectVarName: oldObject,
		plugincel.ParamsVarName:    nil,
		plugincel.RequestVarName:   common.SchemalessTypedToVal(request),
		plugincel.NamespaceVarName: common.SchemalessTypedToVal(plugincel.CreateNamespaceObject(g.namespace)),
	}
	if g.param != nil {
		bound[plugincel.ParamsVarName] = common.SchemalessTypedToVal(g.param)
	}
	counted := &checks{strictAuthorizer: strictAuthorizer{g.authorizer}}
	if g.authorizer != nil {
		user := g.attributes.GetUserInfo()
		bound[plugincel.AuthorizerVarName] = library.NewAuthorizerVal(user, counted)
		bound[plugincel.RequestResourceAuthorizerVarName] = library.NewResourceAuthorizerVal(user, counted, g.attributes)
	}
	return bound, counted, nil
}

// run is one evaluation of one expression, together with the variables of the
// policy that it reads, each once.
type run struct {
	tracer *tracer
	bound  bindings
	checks *checks
	seeing bool
	// limit is what it may cost, when not seeing. The last expression may cost
	// more: it has a limit of its own.
	limit uint64

	// checked is the number of questions to the authorizer before the run.
	checked uint64
	// running are the expressions that are being evaluated: none of them has a
	// value yet, so a variable that is computed from itself has none. There are
	// no more of them than a policy that is explained has variables.
	running map[*traced]bool
	// cost is that of the expression and its variables, when not seeing.
	cost uint64
	took time.Duration
	// cutShort says that a limit, the end of time or an authorizer that does not
	// answer ended it.
	cutShort bool
	// seen are the expressions that were evaluated, the first one first.
	seen []sight
}

// sight is what an expression saw, when seeing.
type sight struct {
	expression *traced
	state      interpreter.EvalState
}

// evaluate runs expression with fresh variables.
func (e *explanation) evaluate(ctx context.Context, expression *traced, limit uint64, seeing bool) *run {
	r := &run{
		tracer: e.tracer, bound: make(bindings, len(e.bound)+1), checks: e.checks, checked: e.checks.n,
		limit: limit, seeing: seeing, running: map[*traced]bool{},
	}
	for name, value := range e.bound {
		r.bound[name] = value
	}
	variables := lazy.NewMapValue(apiservercel.NewObjectType("kubernetes.variables", nil))
	for i := range e.spec.Variables {
		name := e.spec.Variables[i].Name
		variable := e.tracer.expressions[e.spec.Variables[i].Expression]
		variables.Append(name, func(*lazy.MapValue) ref.Val { return r.variable(ctx, name, variable) })
	}
	r.bound[plugincel.VariableVarName] = variables
	begin := e.clock.Now()
	_, _ = r.expression(ctx, expression) // an error is what the finding is about
	r.took = e.clock.Since(begin)
	return r
}

func (r *run) variable(ctx context.Context, name string, variable *traced) ref.Val {
	value, err := r.expression(ctx, variable)
	if err != nil {
		return types.WrapErr(fmt.Errorf("variable %q cannot be evaluated: %w", name, err))
	}
	return value
}

func (r *run) expression(ctx context.Context, expression *traced) (ref.Val, error) {
	switch {
	case r.running[expression]:
		return nil, errCircle
	case ctx.Err() != nil || !r.seeing && r.charge() > r.limit:
		r.cutShort = true
		return nil, errCutShort
	case !expression.compile():
		return nil, errNotCompiled
	}
	r.running[expression] = true
	defer delete(r.running, expression)
	program := expression.plain
	if r.seeing {
		program = expression.seeing
	}
	place := len(r.seen)
	r.seen = append(r.seen, sight{expression: expression, state: interpreter.NewEvalState()})
	value, details, err := program.ContextEval(ctx, r.bound)
	if state := details.State(); state != nil {
		r.seen[place].state = state
	}
	if cost := details.ActualCost(); cost != nil {
		r.cost += *cost
	}
	if err != nil && (errors.As(err, &interpreter.EvalCancelledError{}) || ctx.Err() != nil) {
		r.cutShort = true
	}
	return value, err
}

// charge is what the run costs here, where the authorizer is no webhook.
func (r *run) charge() uint64 {
	asked := r.checks.n - r.checked
	return r.cost - min(r.cost, asked*checkCost) + asked*checkCharge
}
