// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"errors"
	"fmt"

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

// errNotCompiled stands for what the policy itself reports in detail.
var errNotCompiled = errors.New("the expression does not compile")

// given is what the expressions of one evaluation are given.
type given struct {
	in         policy.Input
	resource   schema.GroupVersionResource // that request.resource names
	attributes *admission.VersionedAttributes
	param      runtime.Object
	namespace  *corev1.Namespace
	authorizer authorizer.UnconditionalAuthorizer
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
// k8s.io/apiserver/pkg/admission/plugin/cel. They are not safe for concurrent use.
func (g *given) bind() (bindings, error) {
	object, err := g.attributes.VersionedObject.CELValue()
	if err != nil {
		return nil, err
	}
	oldObject, err := g.attributes.VersionedOldObject.CELValue()
	if err != nil {
		return nil, err
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
	if g.authorizer != nil {
		user := g.attributes.GetUserInfo()
		bound[plugincel.AuthorizerVarName] = library.NewAuthorizerVal(user, g.authorizer)
		bound[plugincel.RequestResourceAuthorizerVarName] = library.NewResourceAuthorizerVal(user, g.authorizer, g.attributes)
	}
	return bound, nil
}

// run is one evaluation of one expression, together with the variables of the
// policy that it reads, each once.
type run struct {
	tracer *tracer
	bound  bindings
	seeing bool
	// cost is that of the expression and its variables, when not seeing.
	cost uint64
	// cutShort says that a limit or the end of time ended it.
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
func (t *tracer) evaluate(ctx context.Context, expression *traced, bound bindings, seeing bool) *run {
	r := &run{tracer: t, bound: make(bindings, len(bound)+1), seeing: seeing}
	for name, value := range bound {
		r.bound[name] = value
	}
	variables := lazy.NewMapValue(apiservercel.NewObjectType("kubernetes.variables", nil))
	for name, variable := range t.variables {
		variables.Append(name, func(*lazy.MapValue) ref.Val { return r.variable(ctx, name, variable) })
	}
	r.bound[plugincel.VariableVarName] = variables
	_, _ = r.expression(ctx, expression) // an error is what the finding is about
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
	if !expression.compile(r.tracer.env) {
		return nil, errNotCompiled
	}
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
