// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/warning"
)

// upstream is kube-apiserver's dispatcher over hooks that are in order.
type upstream struct {
	world *world
	hooks []validating.PolicyHook // by name, and so are their bindings
}

func newUpstream(w *world, s *scenario) *upstream {
	u := &upstream{world: w}
	for _, policy := range s.policies {
		hook := u.hook(policy)
		for _, binding := range s.bindings {
			if binding.Spec.PolicyName == policy.Name {
				hook.Bindings = append(hook.Bindings, binding)
			}
		}
		if len(hook.Bindings) == 0 {
			continue
		}
		slices.SortFunc(hook.Bindings, func(a, b *validating.PolicyBinding) int { return cmp.Compare(a.Name, b.Name) })
		u.hooks = append(u.hooks, hook)
	}
	slices.SortFunc(u.hooks, func(a, b validating.PolicyHook) int { return cmp.Compare(a.Policy.Name, b.Policy.Name) })
	return u
}

// hook is what policySource of upstream's generic package makes of a policy.
func (u *upstream) hook(policy *validating.Policy) validating.PolicyHook {
	hook := validating.PolicyHook{Policy: policy, Evaluator: compileUpstream(policy)}
	if kind := policy.Spec.ParamKind; kind != nil {
		wanted := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
		if params, ok := u.world.params[wanted]; ok {
			hook.ParamInformer, hook.ParamScope = params, params.scope
		} else {
			hook.ConfigurationError = fmt.Errorf("failed to find resource referenced by paramKind: '%v'", wanted)
		}
	}
	return hook
}

// compileUpstream puts together what upstream exports, as its plugin does.
func compileUpstream(policy *validating.Policy) validating.Validator {
	spec := &policy.Spec
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return validating.NewValidator(nil, nil, nil, nil, spec.FailurePolicy, err)
	}
	judging := plugincel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	telling := plugincel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil}
	for i := range spec.Variables {
		variable := &validating.Variable{Name: spec.Variables[i].Name, Expression: spec.Variables[i].Expression}
		compiler.CompileAndStoreVariable(variable, judging, environment.StoredExpressions)
	}
	var conditions, validations, messages, annotations []plugincel.ExpressionAccessor
	for i := range spec.MatchConditions {
		condition := matchconditions.MatchCondition(spec.MatchConditions[i])
		conditions = append(conditions, &condition)
	}
	for i := range spec.Validations {
		v := &spec.Validations[i]
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var message plugincel.ExpressionAccessor
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	for i := range spec.AuditAnnotations {
		a := &spec.AuditAnnotations[i]
		annotations = append(annotations, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	var matcher matchconditions.Matcher
	if len(conditions) > 0 {
		matcher = matchconditions.NewMatcher(compiler.CompileCondition(conditions, judging, environment.StoredExpressions),
			spec.FailurePolicy, "policy", "validate", "all")
	}
	return validating.NewValidator(
		compiler.CompileCondition(validations, judging, environment.StoredExpressions), matcher,
		compiler.CompileCondition(annotations, judging, environment.StoredExpressions),
		compiler.CompileCondition(messages, telling, environment.StoredExpressions),
		spec.FailurePolicy, nil)
}

// answer is what kube-apiserver would tell its user and write into its audit log.
func (u *upstream) answer(ctx context.Context, q *question) (answer, sight) {
	matcher := &watchedMatcher{PolicyMatcher: generic.NewPolicyMatcher(matching.NewMatcher(lister{world: u.world}, u.world.client))}
	dispatcher := validating.NewDispatcher(oracle{}, matcher)
	var heard warnings
	attributes := &recordedAttributes{Attributes: q.attributes()}
	err := dispatcher.Dispatch(warning.WithWarningRecorder(ctx, &heard), attributes, u.world.objectInterfaces(), u.hooks)
	if matcher.sight.matched {
		matcher.sight.params = u.params(q)
	}
	return newAnswer(err, heard.texts, attributes.annotations), matcher.sight
}

// sight is what upstream's matcher has matched.
type sight struct {
	matched, equivalent, converted bool
	params                         int // of the binding that has the most
}

// params is the largest number of params that a binding selects.
func (u *upstream) params(q *question) int {
	most := 0
	for _, hook := range u.hooks {
		for _, binding := range hook.Bindings {
			if hook.Policy.Spec.ParamKind == nil || binding.Spec.ParamRef == nil || hook.ConfigurationError != nil {
				continue
			}
			params, err := generic.CollectParams(hook.Policy.Spec.ParamKind, hook.ParamInformer, hook.ParamScope,
				binding.Spec.ParamRef, q.Namespace, nil, nil)
			if err == nil {
				most = max(most, len(params))
			}
		}
	}
	return most
}

// watchedMatcher remembers what it has matched.
type watchedMatcher struct {
	generic.PolicyMatcher
	sight sight
}

func (m *watchedMatcher) DefinitionMatches(a admission.Attributes, o admission.ObjectInterfaces, definition generic.PolicyAccessor) (bool, schema.GroupVersionResource, schema.GroupVersionKind, error) {
	matches, resource, kind, err := m.PolicyMatcher.DefinitionMatches(a, o, definition)
	m.sight.matched = m.sight.matched || matches
	m.sight.equivalent = m.sight.equivalent || matches && resource != a.GetResource()
	m.sight.converted = m.sight.converted || matches && kind != a.GetKind()
	return matches, resource, kind, err
}

// warnings hears each text once, as the recorder of the generic API server does.
type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) {
	if text != "" && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// recordedAttributes shows the audit annotations that it is given.
type recordedAttributes struct {
	admission.Attributes
	annotations map[string]string
}

func (a *recordedAttributes) AddAnnotation(key, value string) error {
	if err := a.Attributes.AddAnnotation(key, value); err != nil {
		return err
	}
	if a.annotations == nil {
		a.annotations = map[string]string{}
	}
	a.annotations[key] = value
	return nil
}
