// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
	"github.com/portcullis-dev/portcullis/pkg/admission/internal/intern"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// compiler turns the expressions of a policy into a program. It is safe for
// concurrent use.
type compiler struct {
	base       func() *cel.Env
	planner    func() (*planner, error)
	workspaces workspaces
	// expressions are those that policies use: what several of them say is compiled once.
	expressions intern.Table[expressionKey, expression]
	tracing     *tracing
}

func newCompiler() *compiler {
	base := sync.OnceValue(func() *cel.Env {
		return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	})
	c := &compiler{
		base:       base,
		planner:    sync.OnceValues(func() (*planner, error) { return newPlanner(base()) }),
		workspaces: workspaces{base: base},
	}
	c.tracing = newTracing(c)
	return c
}

// compile returns a program for spec and the faults of its expressions. The
// declarations are those of compilePolicy in
// k8s.io/apiserver/pkg/admission/plugin/policy/validating: messages have no
// authorizer, everything else declares it. A policy whose compilation fails as a
// whole or panics judges nothing: each request that it matches is an error. Nor
// does one with variables that must not be evaluated.
func (c *compiler) compile(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) (p *program, errs field.ErrorList) {
	p = &program{spec: spec, needsNamespace: mentions(spec, "namespaceObject"), tracing: c.tracing}
	defer func() {
		if cause := recover(); cause != nil {
			p.failure = errors.New("compiling the policy panicked")
			errs = field.ErrorList{field.InternalError(field.NewPath("spec"), p.failure)}
		}
		p.faulty = len(errs) > 0
	}()
	planner, err := c.planner()
	if err != nil {
		p.failure = err
		return p, field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	s := &compilation{
		compiler: c, planner: planner, workspace: c.workspaces.take(), program: p,
		judging: declarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true},
		telling: declarations{HasParams: spec.ParamKind != nil},
	}
	s.policy()
	c.workspaces.put(s.workspace) // not after a panic
	if s.failure != nil {
		p.failure = s.failure
		return p, field.ErrorList{field.InternalError(field.NewPath("spec"), s.failure)}
	}
	return p, s.errs
}

// compilation compiles the expressions of one policy and collects their faults.
type compilation struct {
	compiler  *compiler
	planner   *planner
	workspace *workspace
	program   *program
	judging   declarations
	telling   declarations

	costs   map[string]*bound.Expression // of variables; nil when they are not known
	errs    field.ErrorList
	failure error // of the policy as a whole
}

func (s *compilation) policy() {
	spec, p := s.program.spec, s.program
	s.variables(spec.Variables)
	boolean, text := []*cel.Type{cel.BoolType}, []*cel.Type{cel.StringType}
	p.conditions = make([]clause, len(spec.MatchConditions))
	for i := range p.conditions {
		p.conditions[i] = s.clause(spec.MatchConditions[i].Expression, s.judging, boolean, place{"matchConditions", i, "expression"})
	}
	p.validations, p.passed = make([]clause, len(spec.Validations)), make([]verdict.Finding, len(spec.Validations))
	for i := range p.validations {
		p.passed[i] = verdict.Finding{Kind: verdict.Pass, Index: i, Rule: fmt.Sprintf("validations[%d]", i), Expression: spec.Validations[i].Expression}
		p.validations[i] = s.clause(spec.Validations[i].Expression, s.judging, boolean, place{"validations", i, "expression"})
	}
	p.annotations = make([]clause, len(spec.AuditAnnotations))
	for i := range p.annotations {
		p.annotations[i] = s.clause(spec.AuditAnnotations[i].ValueExpression, s.judging, []*cel.Type{cel.StringType, cel.NullType}, place{"auditAnnotations", i, "valueExpression"})
	}
	p.messages = make([]clause, len(spec.Validations))
	for i := range p.messages {
		if source := spec.Validations[i].MessageExpression; source != "" {
			p.messages[i] = s.clause(source, s.telling, text, place{"validations", i, "messageExpression"})
		}
	}
}

// place is that of an expression in its policy.
type place struct {
	list  string
	index int
	name  string
}

func (p place) path() *field.Path { return field.NewPath("spec", p.list).Index(p.index).Child(p.name) }

// clause compiles an expression of the policy.
func (s *compilation) clause(source string, declared declarations, returns []*cel.Type, at place) clause {
	compiled, fault := s.expression(source, declared, returns)
	if fault != nil {
		s.errs = append(s.errs, field.Invalid(at.path(), source, fault.Detail))
		return clause{source: source, fault: fault}
	}
	return clause{source: source, expression: compiled, cost: s.cost(compiled)}
}

// cost returns nil when nothing is known.
func (s *compilation) cost(e *expression) *bound.Expression {
	switch {
	case e.uses&readsVariables == 0:
		return e.cost
	case s.costs != nil:
		return bound.Analyze(e.checked, s.costs)
	}
	return nil
}

// expression follows CompileCELExpression of
// k8s.io/apiserver/pkg/admission/plugin/cel in what it refuses and how.
func (s *compilation) expression(source string, declared declarations, returns []*cel.Type) (*expression, *apiservercel.Error) {
	key := expressionKey{source: source, declared: declared, sees: s.workspace.sees(source)}
	e := s.compiler.expressions.Find(key)
	known := e != nil
	if !known {
		env, err := s.workspace.environment(declared)
		if err != nil {
			s.failure = err
			return nil, &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: fmt.Sprintf("unexpected error loading CEL environment: %v", err)}
		}
		checked, issues := env.Compile(source)
		if issues != nil {
			return nil, &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: "compilation failed: " + issues.String(), Cause: apiservercel.NewCompilationError(issues)}
		}
		e = &expression{source: source, checked: checked.NativeRep(), output: checked.OutputType(), planner: s.planner}
	}
	if !slices.ContainsFunc(returns, func(t *cel.Type) bool { return e.output.IsExactType(t) || cel.AnyType.IsExactType(t) }) {
		return nil, &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: wrongType(returns, e.output)}
	}
	if known {
		return e, nil
	}
	var err error
	if e.lean, err = s.planner.lean(e.checked); err != nil {
		return nil, &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: "program instantiation failed: " + err.Error()}
	}
	if e.uses = usesOf(e.checked); e.uses&readsVariables == 0 {
		e.cost = bound.Analyze(e.checked, nil)
	}
	return s.compiler.expressions.Intern(key, e), nil
}

func wrongType(want []*cel.Type, got *cel.Type) string {
	if len(want) == 1 {
		return fmt.Sprintf("must evaluate to %v but got %v", want[0].String(), got.String())
	}
	return fmt.Sprintf("must evaluate to one of %v but got %v", want, got.String())
}
