// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (g *generator) scenario() *scenario {
	for range pick(g, 1, 1, 2) {
		g.focus = append(g.focus, pick(g, targets()...))
	}
	s := &scenario{}
	for i := range pick(g, 2, 1, 3, 4) {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{Spec: *g.policy()}
		policy.Name = fmt.Sprintf("%s-%d.example.com", pick(g, "p", "a", "z"), i)
		s.policies = append(s.policies, policy)
		for j := range pick(g, 1, 1, 2, 3) {
			binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{Spec: g.binding(&policy.Spec)}
			binding.Name = fmt.Sprintf("%s-%d-%d", pick(g, "b", "a", "z"), i, j)
			binding.Spec.PolicyName = policy.Name
			s.bindings = append(s.bindings, binding)
		}
	}
	if g.chance(10) { // binds nothing
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{Spec: g.binding(&s.policies[0].Spec)}
		binding.Name, binding.Spec.PolicyName = "lost", "no-such-policy"
		s.bindings = append(s.bindings, binding)
	}
	return s
}

// policy always has matchConstraints, since the API asks for them.
func (g *generator) policy() *admissionregistrationv1.ValidatingAdmissionPolicySpec {
	spec := &admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: g.matchResources(pick(g, 1, 1, 1, 2, 3)),
		FailurePolicy:    g.failurePolicy(),
		ParamKind:        g.paramKind(),
	}
	w := &writer{generator: g, params: spec.ParamKind != nil, heavy: g.heavy()}
	w.variables(spec)
	conditions := pick(g, 0, 0, 1, 2, 3) + w.extra(conditionSlots)
	if w.heavy == variableSlots {
		conditions = pick(g, 0, 2, 3)
	}
	for i := range conditions {
		spec.MatchConditions = append(spec.MatchConditions, admissionregistrationv1.MatchCondition{
			Name: fmt.Sprint("condition-", i), Expression: w.condition(),
		})
	}
	for range pick(g, 1, 1, 2, 3, 4) + w.extra(validationSlots) + w.extra(messageSlots) + w.extra(variableSlots) {
		spec.Validations = append(spec.Validations, w.validation())
	}
	if g.chance(3) || w.heavy == annotationSlots {
		for i := range pick(g, 1, 2, 3) + w.extra(annotationSlots) {
			// The key makes a qualified name together with the name of the policy, as
			// the API asks: others are dropped by kube-apiserver.
			spec.AuditAnnotations = append(spec.AuditAnnotations, admissionregistrationv1.AuditAnnotation{
				Key: fmt.Sprint("key-", i), ValueExpression: w.annotation(),
			})
		}
		if g.chance(8) {
			spec.Validations = nil
		}
	}
	return spec
}

func (g *generator) failurePolicy() *admissionregistrationv1.FailurePolicyType {
	fail, ignore := admissionregistrationv1.Fail, admissionregistrationv1.Ignore
	return pick(g, &fail, &fail, &ignore, &fail, &ignore, nil)
}

// paramKind has always an apiVersion that can be parsed: the API asks for it, and
// upstream would drop the policy.
func (g *generator) paramKind() *admissionregistrationv1.ParamKind {
	kind := func(apiVersion, kind string) *admissionregistrationv1.ParamKind {
		return &admissionregistrationv1.ParamKind{APIVersion: apiVersion, Kind: kind}
	}
	if g.chance(60) {
		return pick(g, kind("example.com/v1", "Nothing"), kind("example.com/v3", "Setting"), kind("v2", "ConfigMap"))
	}
	return pick(g, nil, nil, nil, nil, nil, nil, kind("v1", "ConfigMap"), kind("v1", "ConfigMap"), kind("example.com/v1", "Setting"), kind("example.com/v2", "Setting"),
		kind("example.com/v1", "Realm"), kind("example.com/v2", "Realm"), kind("v1", "Secret"), nil)
}

// binding has one action at least, since the API asks for it: without any ours
// denies, and upstream does nothing.
func (g *generator) binding(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec {
	const deny, warn, audit = admissionregistrationv1.Deny, admissionregistrationv1.Warn, admissionregistrationv1.Audit
	binding := admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		ValidationActions: pick(g, []admissionregistrationv1.ValidationAction{deny}, []admissionregistrationv1.ValidationAction{deny},
			[]admissionregistrationv1.ValidationAction{deny, audit}, []admissionregistrationv1.ValidationAction{warn},
			[]admissionregistrationv1.ValidationAction{audit, warn}, []admissionregistrationv1.ValidationAction{audit},
			[]admissionregistrationv1.ValidationAction{warn, deny}),
	}
	if spec.ParamKind != nil && !g.chance(8) || g.chance(20) {
		binding.ParamRef = g.paramRef(spec.ParamKind)
	}
	if g.chance(5) {
		binding.MatchResources = g.matchResources(pick(g, 0, 0, 1, 2))
	}
	return binding
}

// paramRef always says what to do when nothing is found, since the API asks for
// it: without an answer ours is an error, and upstream passes.
func (g *generator) paramRef(kind *admissionregistrationv1.ParamKind) *admissionregistrationv1.ParamRef {
	allow, refuse := admissionregistrationv1.AllowAction, admissionregistrationv1.DenyAction
	ref := &admissionregistrationv1.ParamRef{ParameterNotFoundAction: pick(g, &refuse, &allow, &allow)}
	switch g.draw(12) {
	default:
		ref.Name = "limits"
	case 1, 2:
		ref.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	case 3:
		ref.Selector = &metav1.LabelSelector{}
	case 4:
		ref.Selector = g.selector()
	case 5:
		ref.Name = pick(g, "more", "wide", "other", "absent", "empty", "prod")
	case 6:
		if g.chance(4) { // refused by the API, but an old server may have stored it
			ref.Name, ref.Selector = "limits", &metav1.LabelSelector{}
		}
	}
	namespaced := kind == nil || kind.Kind != "Realm" && kind.Kind != "Namespace"
	if namespaced && g.chance(2) || g.chance(15) {
		ref.Namespace = pick(g, "prod", "prod", "test", "absent")
	}
	return ref
}
