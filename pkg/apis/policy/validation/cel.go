// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// celEnvironment is what expressions are compiled in. It is expensive to build
// and only read afterwards: one serves all callers.
type celEnvironment struct {
	base *environment.EnvSet
	// plain knows no variables.
	plain plugincel.Compiler
}

func newCELEnvironment(base *environment.EnvSet) *celEnvironment {
	return &celEnvironment{base: base, plain: plugincel.NewCompiler(base)}
}

// kubernetesEnvironment returns the environment of admission policies in
// Kubernetes. In it, new expressions may only use what the previous minor
// version knows too.
//
//nolint:gochecknoglobals // A constant in effect: built at most once, at the first use, and never written again.
var kubernetesEnvironment = sync.OnceValue(func() *celEnvironment {
	return newCELEnvironment(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// policyCompiler compiles the expressions of one policy, save its match
// conditions. It is not safe for concurrent use.
type policyCompiler struct {
	plugincel.Compiler
	// composited is nil in a policy without variables. There `variables` is not
	// declared, as upstream.
	composited *plugincel.CompositedCompiler
}

func (e *celEnvironment) newPolicyCompiler(variables int) (policyCompiler, error) {
	if variables == 0 {
		return policyCompiler{Compiler: e.plain}, nil
	}
	composited, err := plugincel.NewCompositedCompiler(e.base)
	if err != nil {
		return policyCompiler{}, fmt.Errorf("declare the variables of the policy: %w", err)
	}
	return policyCompiler{Compiler: composited, composited: composited}, nil
}

// compileVariable declares the variable for the expressions compiled after it,
// even when it does not compile: its users are then not at fault.
func (c policyCompiler) compileVariable(variable *admissionregistrationv1.Variable, declarations plugincel.OptionalVariableDeclarations, envType environment.Type) *apiservercel.Error {
	err := c.declare(variable.Name, variable.Expression, declarations, envType)
	if err != nil && err.Type == apiservercel.ErrorTypeInternal { // perhaps a panic, before it was declared
		_ = c.declare(variable.Name, "dyn(null)", declarations, envType)
	}
	return err
}

func (c policyCompiler) declare(name, expression string, declarations plugincel.OptionalVariableDeclarations, envType environment.Type) (err *apiservercel.Error) {
	defer contain(&err)
	return c.composited.CompileAndStoreVariable(&validating.Variable{Name: name, Expression: expression}, declarations, envType).Error
}

// compile returns why an expression does not compile.
func compile(c plugincel.Compiler, accessor plugincel.ExpressionAccessor, declarations plugincel.OptionalVariableDeclarations, envType environment.Type) (err *apiservercel.Error) {
	defer contain(&err)
	return c.CompileCELExpression(accessor, declarations, envType).Error
}

// contain makes of a panic of the compiler an error of the expression. cel-go panics
// for constant maps with keys that cannot be keys, such as bytes.
func contain(err **apiservercel.Error) {
	if cause := recover(); cause != nil {
		*err = &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: fmt.Sprintf("compiling the expression panicked: %v", cause)}
	}
}

// storedExpressions are the expressions of the object that is to be replaced,
// without the white space around them.
type storedExpressions struct {
	matchConditions  sets.Set[string]
	validations      sets.Set[string]
	messages         sets.Set[string]
	auditAnnotations sets.Set[string]
}

// storedExpressionsOf includes variables, which upstream's
// findValidatingPolicyPreexistingExpressions forgets: a policy must not become
// unwritable for a variable that nobody changed.
func storedExpressionsOf(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) storedExpressions {
	stored := storedMatchConditions(spec.MatchConditions)
	for _, variable := range spec.Variables {
		stored.validations.Insert(strings.TrimSpace(variable.Expression))
	}
	for _, validation := range spec.Validations {
		stored.validations.Insert(strings.TrimSpace(validation.Expression))
		stored.messages.Insert(strings.TrimSpace(validation.MessageExpression))
	}
	for _, annotation := range spec.AuditAnnotations {
		stored.auditAnnotations.Insert(strings.TrimSpace(annotation.ValueExpression))
	}
	return stored
}

// storedMatchConditions has no other expressions.
func storedMatchConditions(conditions []admissionregistrationv1.MatchCondition) storedExpressions {
	stored := storedExpressions{
		matchConditions:  sets.New[string](),
		validations:      sets.New[string](),
		messages:         sets.New[string](),
		auditAnnotations: sets.New[string](),
	}
	for _, condition := range conditions {
		stored.matchConditions.Insert(strings.TrimSpace(condition.Expression))
	}
	return stored
}

// environmentFor returns the environment that an expression is compiled in,
// given those that are stored already.
func environmentFor(expression string, stored sets.Set[string]) environment.Type {
	if stored.Has(strings.TrimSpace(expression)) {
		return environment.StoredExpressions
	}
	return environment.NewExpressions
}

// celErrors reports err, which may be nil, at the field that holds expression.
func celErrors(path *field.Path, expression string, err *apiservercel.Error) field.ErrorList {
	if err == nil {
		return nil
	}
	switch err.Type {
	case apiservercel.ErrorTypeRequired:
		return field.ErrorList{field.Required(path, err.Detail)}
	case apiservercel.ErrorTypeInvalid:
		return field.ErrorList{field.Invalid(path, expression, err.Detail)}
	case apiservercel.ErrorTypeInternal:
		return field.ErrorList{field.InternalError(path, err)}
	default:
		return field.ErrorList{field.InternalError(path, fmt.Errorf("unsupported error type: %w", err))}
	}
}
