// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/expressions"
)

// metricName stands for all policies in upstream's metrics of match conditions:
// with names of their own, each candidate of a preview would leave a series.
const metricName = "all"

// compiler turns the expressions of a policy into a program.
type compiler struct {
	// environment is shared by all policies and built on first use.
	environment func() *environment.EnvSet
	tracing     *tracing
}

func newCompiler() *compiler {
	base := sync.OnceValue(func() *environment.EnvSet {
		return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	})
	return &compiler{environment: base, tracing: newTracing(base)}
}

// compile returns a program for spec and the faults of its expressions. The
// declarations are those of compilePolicy in
// k8s.io/apiserver/pkg/admission/plugin/policy/validating: messages have no
// authorizer, everything else declares it. A policy whose compilation fails as a
// whole or panics judges nothing: each request that it matches is an error. Nor
// does one with variables that must not be evaluated.
func (c *compiler) compile(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) (p *program, errs field.ErrorList) {
	defer func() {
		if cause := recover(); cause != nil {
			err := errors.New("compiling the policy panicked")
			p.validator = validating.NewValidator(nil, nil, nil, nil, nil, err)
			errs = field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
		}
		p.faulty = len(errs) > 0
	}()
	p = &program{spec: spec, needsNamespace: mentions(spec, "namespaceObject"), tracing: c.tracing}
	composed, err := plugincel.NewCompositedCompiler(c.environment())
	if err != nil {
		p.validator = validating.NewValidator(nil, nil, nil, nil, nil, err)
		return p, field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	s := &compilation{
		compiler: composed,
		judging:  plugincel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true},
		telling:  plugincel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil},
	}
	if len(spec.Variables) > 0 {
		p.unusable = s.variables(spec.Variables, c.environment().StoredExpressionsEnv())
		if p.variables, err = composed.Env(environment.StoredExpressions); err != nil {
			s.errs = append(s.errs, field.InternalError(field.NewPath("spec", "variables"), err))
		}
	}
	// A matcher and a validator without a failure policy fail closed; Fold
	// applies that of the policy.
	if conditions := s.matchConditions(spec.MatchConditions); conditions != nil {
		p.conditions = matchconditions.NewMatcher(conditions, nil, "policy", "validate", metricName)
	}
	p.validator = validating.NewValidator(s.validations(spec.Validations), nil,
		s.auditAnnotations(spec.AuditAnnotations), s.messages(spec.Validations), nil, nil)
	return p, s.errs
}

// compilation compiles the expressions of one policy and collects their faults.
type compilation struct {
	compiler *plugincel.CompositedCompiler
	judging  plugincel.OptionalVariableDeclarations
	telling  plugincel.OptionalVariableDeclarations
	errs     field.ErrorList
}

func (s *compilation) condition(accessors []plugincel.ExpressionAccessor, declared plugincel.OptionalVariableDeclarations, path func(i int) *field.Path) plugincel.ConditionEvaluator {
	evaluator := s.compiler.CompileCondition(accessors, declared, environment.StoredExpressions)
	if len(evaluator.CompilationErrors()) == 0 {
		return evaluator
	}
	for i, accessor := range accessors { // once more, to learn which ones
		if accessor == nil {
			continue
		}
		result := s.compiler.CompileCELExpression(accessor, declared, environment.StoredExpressions)
		if result.Error != nil {
			s.errs = append(s.errs, field.Invalid(path(i), accessor.GetExpression(), result.Error.Detail))
		}
	}
	return evaluator
}

// variables returns an error when some must not be evaluated. One that does not
// compile is none of them: upstream does not evaluate it, and nothing of a policy
// with faults is traced.
func (s *compilation) variables(variables []admissionregistrationv1.Variable, parsing *cel.Env) error {
	faulty := make([]bool, len(variables))
	path := func(i int) *field.Path { return field.NewPath("spec", "variables").Index(i).Child("expression") }
	for i := range variables {
		variable := &validating.Variable{Name: variables[i].Name, Expression: variables[i].Expression}
		result := s.compiler.CompileAndStoreVariable(variable, s.judging, environment.StoredExpressions)
		if result.Error != nil {
			faulty[i] = true
			s.errs = append(s.errs, field.Invalid(path(i), variable.Expression, result.Error.Detail))
		}
	}
	faults := expressions.CheckVariables(parsing, variables, func(i int) bool { return faulty[i] })
	if len(faults) == 0 {
		return nil
	}
	for _, fault := range faults {
		s.errs = append(s.errs, field.Invalid(path(fault.Index), variables[fault.Index].Expression, fault.Detail))
	}
	return fmt.Errorf("failed to configure policy: %s: %s", path(faults[0].Index), faults[0].Detail)
}

func (s *compilation) matchConditions(conditions []admissionregistrationv1.MatchCondition) plugincel.ConditionEvaluator {
	if len(conditions) == 0 {
		return nil
	}
	accessors := make([]plugincel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		condition := matchconditions.MatchCondition(conditions[i])
		accessors[i] = &condition
	}
	return s.condition(accessors, s.judging, func(i int) *field.Path {
		return field.NewPath("spec", "matchConditions").Index(i).Child("expression")
	})
}

func (s *compilation) validations(validations []admissionregistrationv1.Validation) plugincel.ConditionEvaluator {
	accessors := make([]plugincel.ExpressionAccessor, len(validations))
	for i := range validations {
		accessors[i] = &validating.ValidationCondition{
			Expression: validations[i].Expression,
			Message:    validations[i].Message,
			Reason:     validations[i].Reason,
		}
	}
	return s.condition(accessors, s.judging, func(i int) *field.Path {
		return field.NewPath("spec", "validations").Index(i).Child("expression")
	})
}

func (s *compilation) messages(validations []admissionregistrationv1.Validation) plugincel.ConditionEvaluator {
	accessors := make([]plugincel.ExpressionAccessor, len(validations))
	for i := range validations {
		if expression := validations[i].MessageExpression; expression != "" {
			accessors[i] = &validating.MessageExpressionCondition{MessageExpression: expression}
		}
	}
	return s.condition(accessors, s.telling, func(i int) *field.Path {
		return field.NewPath("spec", "validations").Index(i).Child("messageExpression")
	})
}

func (s *compilation) auditAnnotations(annotations []admissionregistrationv1.AuditAnnotation) plugincel.ConditionEvaluator {
	accessors := make([]plugincel.ExpressionAccessor, len(annotations))
	for i := range annotations {
		accessors[i] = &validating.AuditAnnotationCondition{
			Key:             annotations[i].Key,
			ValueExpression: annotations[i].ValueExpression,
		}
	}
	return s.condition(accessors, s.judging, func(i int) *field.Path {
		return field.NewPath("spec", "auditAnnotations").Index(i).Child("valueExpression")
	})
}
