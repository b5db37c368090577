// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// upstream is the engine of kube-apiserver.
type upstream struct {
	conditions matchconditions.Matcher // nil when there are none
	validator  validating.Validator
}

// compileUpstream puts an engine together as compilePolicy in
// k8s.io/apiserver/pkg/admission/plugin/policy/validating does.
func compileUpstream(t testing.TB, spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) upstream {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	judging := plugincel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	telling := plugincel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil}
	for _, v := range spec.Variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, judging, environment.StoredExpressions)
	}
	var matchConditions, rules, tellings, notes []plugincel.ExpressionAccessor
	for i := range spec.MatchConditions {
		matchConditions = append(matchConditions, (*matchconditions.MatchCondition)(&spec.MatchConditions[i]))
	}
	for _, v := range spec.Validations {
		rules = append(rules, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var telling plugincel.ExpressionAccessor
		if v.MessageExpression != "" {
			telling = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		tellings = append(tellings, telling)
	}
	for _, a := range spec.AuditAnnotations {
		notes = append(notes, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	compile := func(accessors []plugincel.ExpressionAccessor, declared plugincel.OptionalVariableDeclarations) plugincel.ConditionEvaluator {
		return compiler.CompileCondition(accessors, declared, environment.StoredExpressions)
	}
	var u upstream
	if len(matchConditions) > 0 {
		u.conditions = matchconditions.NewMatcher(compile(matchConditions, judging), nil, "policy", "validate", "all")
	}
	u.validator = validating.NewValidator(compile(rules, judging), nil, compile(notes, judging), compile(tellings, telling), nil, nil)
	return u
}

// verdictOf is everything that an engine finds.
type verdictOf struct {
	Unmet  string // the name of the match condition that is false
	Error  string // of the match conditions
	Result validating.ValidateResult
}

func (u upstream) judge(ctx context.Context, in policy.Input, attributes *admission.VersionedAttributes, namespace *corev1.Namespace) verdictOf {
	own := *attributes
	var param runtime.Object
	if in.Param != nil {
		param = in.Param
	}
	if u.conditions != nil {
		switch result := u.conditions.Match(ctx, &own, param, in.View.Authorizer()); {
		case result.Error != nil:
			return verdictOf{Error: result.Error.Error()}
		case !result.Matches:
			return verdictOf{Unmet: result.FailedConditionName}
		}
	}
	result := u.validator.Validate(ctx, in.Matched.Resource, &own, param, namespace, celconfig.RuntimeCELCostBudget, in.View.Authorizer())
	for i := range result.Decisions {
		result.Decisions[i].Elapsed = 0
	}
	for i := range result.AuditAnnotations {
		result.AuditAnnotations[i].Elapsed = 0
	}
	return verdictOf{Result: result}
}

// everything are all parts of a policy.
func everything() parts {
	return parts(0).with(conditions).with(validations).with(annotations)
}

// versionOf returns what policies share of a request, and the request as they match
// it.
func versionOf(t testing.TB, in policy.Input) (*shared, *version) {
	t.Helper()
	shared, err := sharedOf(in.Request)
	if err != nil {
		t.Fatal(err)
	}
	version, err := shared.version(in)
	if err != nil {
		t.Fatal(err)
	}
	return shared, version
}

// judgeAs returns what p finds when the parts of fit are evaluated without counting.
func (p *program) judgeAs(t testing.TB, in policy.Input, fit parts) verdictOf {
	t.Helper()
	return p.judgeWithin(t.Context(), t, in, fit)
}

func (p *program) judgeWithin(ctx context.Context, t testing.TB, in policy.Input, fit parts) verdictOf {
	t.Helper()
	shared, version := versionOf(t, in)
	namespace, err := p.namespace(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	frame := version.take(in.Matched.Resource)
	defer version.put(frame)
	e := frame.evaluate(ctx, p, namespace, shared.param(in.Param), in.View.Authorizer())
	unmet, err := p.unmatched(ctx, e, !fit.has(conditions))
	switch {
	case err != nil:
		return verdictOf{Error: err.Error()}
	case unmet >= 0:
		return verdictOf{Unmet: p.spec.MatchConditions[unmet].Name}
	}
	return verdictOf{Result: p.validate(ctx, e, fit).ValidateResult}
}

// attributesOf returns a request as upstream takes it.
func attributesOf(t testing.TB, in policy.Input) *admission.VersionedAttributes {
	t.Helper()
	_, version := versionOf(t, in)
	attributes := *version.attributes
	return &attributes
}

// sizesOf returns the sizes of all that p may read.
func (p *program) sizesOf(t testing.TB, in policy.Input) bound.Sizes {
	t.Helper()
	shared, version := versionOf(t, in)
	frame := version.take(in.Matched.Resource)
	defer version.put(frame)
	sizes := frame.sizes.Max(shared.param(in.Param).sizes)
	if namespace, err := p.namespace(t.Context(), in); err == nil && namespace != nil {
		sizes = sizes.Max(shared.namespaceSizes(namespace))
	}
	return sizes
}

func dump(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) string {
	text, err := json.MarshalIndent(spec, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// kindOf counts what a test has seen.
func kindOf(v verdictOf) string {
	switch {
	case v.Error != "":
		return "condition error"
	case v.Unmet != "":
		return "condition false"
	}
	for _, d := range v.Result.Decisions {
		switch {
		case d.Evaluation == validating.EvalError && strings.Contains(d.Message, "out of cost budget"):
			return "out of budget"
		case d.Evaluation == validating.EvalError:
			return "error"
		}
	}
	for _, d := range v.Result.Decisions {
		if d.Evaluation == validating.EvalDeny {
			return "denied"
		}
	}
	return "allowed"
}
