// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// kindKey is the key of the ConfigMaps of the tests that says what they are.
const kindKey = "kind"

const goodKind = "good"

// badKind is what the policy of this number denies.
func badKind(i int) string { return fmt.Sprintf("bad-%04d", i) }

// policyName is that of the policy of this number, and of its binding.
func (s *scene) policyName(i int) string { return fmt.Sprintf("%s-%04d", s.namespace, i) }

// denial is what the policy of this number says of a bad ConfigMap.
func (s *scene) denial(i int) string {
	name := s.policyName(i)
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: failed expression: object.data.%s != '%s'", name, name, kindKey, badKind(i))
}

// newDenial is a policy that denies the bad ConfigMaps of this number in the namespace
// of the test.
func (s *scene) newDenial(i int) (*v1alpha1.ValidatingAdmissionPolicy, *v1alpha1.ValidatingAdmissionPolicyBinding) {
	return s.newPolicy(s.policyName(i), fmt.Sprintf("object.data.%s != '%s'", kindKey, badKind(i)))
}

// newPolicy is a policy about ConfigMaps of the namespace of the test.
func (s *scene) newPolicy(name, expression string) (*v1alpha1.ValidatingAdmissionPolicy, *v1alpha1.ValidatingAdmissionPolicyBinding) {
	rule := admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
	policy := &v1alpha1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}},
			Validations:      []admissionregistrationv1.Validation{{Expression: expression}},
		},
	}
	binding := &v1alpha1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
			},
		},
	}
	return policy, binding
}

// store stores a policy and its binding, and deletes them when the test ends. The
// binding comes first, so that the policy judges as soon as it is in force.
func (s *scene) store(policy *v1alpha1.ValidatingAdmissionPolicy, binding *v1alpha1.ValidatingAdmissionPolicyBinding) {
	s.Helper()
	if _, err := s.policies.ValidatingAdmissionPolicyBindings().Create(s.Context(), binding, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	if _, err := s.policies.ValidatingAdmissionPolicies().Create(s.Context(), policy, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		ctx := context.WithoutCancel(s.Context())
		_ = s.policies.ValidatingAdmissionPolicies().Delete(ctx, policy.Name, metav1.DeleteOptions{}) // the test may have
		_ = s.policies.ValidatingAdmissionPolicyBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{})
	})
}

// storeDenials stores this many denials and waits until they are in force everywhere.
func (s *scene) storeDenials(count int) {
	s.Helper()
	for i := range count {
		s.store(s.newDenial(i))
	}
	for i := range count {
		s.waitReady(s.policyName(i))
	}
}

// waitReady waits until the condition Ready of a policy says that it is in force.
func (s *scene) waitReady(name string) {
	s.Helper()
	s.wait("policy "+name, func(ctx context.Context) error {
		policy, err := s.policies.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return isReady(policy)
	})
}

func isReady(policy *v1alpha1.ValidatingAdmissionPolicy) error {
	ready := meta.FindStatusCondition(policy.Status.Conditions, "Ready")
	switch {
	case ready == nil:
		return fmt.Errorf("%s has no condition Ready", policy.Name)
	case ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != policy.Generation:
		return fmt.Errorf("%s is not Ready: %s of generation %d: %s", policy.Name, ready.Status, ready.ObservedGeneration, ready.Message)
	}
	return nil
}

// configMap is one of the namespace of the test.
func (s *scene) configMap(name, kind string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace},
		Data:       map[string]string{kindKey: kind},
	}
}

// manifests are a denial and its binding as users write them, the binding first: the
// policy is ready when both are in force.
func (s *scene) manifests(i int) string {
	return fmt.Sprintf(`apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[4]s}}}
---
apiVersion: policy.portcullis.dev/v1alpha1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  validations:
  - expression: object.data.%[2]s != '%[3]s'
`, s.policyName(i), kindKey, badKind(i), s.namespace)
}
