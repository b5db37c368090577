// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench_test measures the engine beside the ValidatingAdmissionPolicy
// plugin of k8s.io/apiserver, in one process, with the same policies and the same
// request. TestCompare prints the ratios; see make bench-compare.
package bench_test

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// matching is how many policies are about the request, where there are several.
const matching = 10

// workload is what is installed.
type workload struct {
	Name     string
	Policies int // the first of them match
	Bindings int // of each policy
	// InUse says that requests have asked all policies of late, not only those that
	// match the one that is measured.
	InUse bool
}

func (w workload) matching() int { return min(matching, w.Policies) }

// policy returns the policy with a number. No other has its expressions, its
// variable or its messages, so that nothing can be compiled once for several.
func (w workload) policy(i int) *admissionregistrationv1.ValidatingAdmissionPolicy {
	fail, equivalent, all := admissionregistrationv1.Fail, admissionregistrationv1.Equivalent, admissionregistrationv1.AllScopes
	variable := fmt.Sprintf("containers%d", i)
	rule := admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}, Scope: &all}
	if i >= w.matching() {
		resource := elsewhere(i)
		rule.APIGroups, rule.Resources = []string{resource.Group}, []string{resource.Resource}
	}
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName(i), Generation: 1, ResourceVersion: fmt.Sprint(i + 1)},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy:       &equivalent,
				NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}, Rule: rule,
					},
				}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: fmt.Sprintf("not-exempt-%d", i), Expression: fmt.Sprintf("request.userInfo.username != 'system:exempt-%d'", i)},
			},
			Variables: []admissionregistrationv1.Variable{{Name: variable, Expression: fmt.Sprintf("object.spec.template.spec.containers.filter(c, c.name != 'sidecar-%d')", i)}},
			Validations: []admissionregistrationv1.Validation{
				{
					Expression:        fmt.Sprintf("variables.%s.all(c, !c.image.startsWith('registry-%d.example.com/'))", variable, i),
					MessageExpression: fmt.Sprintf("object.metadata.name + ' takes an image of registry %d'", i),
				},
				{Expression: fmt.Sprintf("object.spec.replicas <= %d", 100+i), Message: fmt.Sprintf("more than %d replicas", 100+i)},
				{Expression: fmt.Sprintf("!('forbidden-%d' in object.metadata.labels)", i), Message: fmt.Sprintf("label %d is forbidden", i)},
			},
		},
	}
}

// elsewhere is what a policy is about that is not about the request.
func elsewhere(i int) schema.GroupResource {
	return schema.GroupResource{Group: fmt.Sprintf("group%d.example.com", i%50), Resource: fmt.Sprintf("things%d", i%500)}
}

func (w workload) binding(i, of int) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%05d", policyName(of), i), Generation: 1, ResourceVersion: fmt.Sprint(i + 1)},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policyName(of),
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

func policyName(i int) string { return fmt.Sprintf("policy-%05d", i) }
