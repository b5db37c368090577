// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// storedObjects returns what each file under testdata/stored is read as.
func storedObjects() map[string]runtime.Object {
	return map[string]runtime.Object{
		"validatingadmissionpolicy.json":        storedPolicy(),
		"validatingadmissionpolicybinding.json": storedBinding(),
		"clusterpolicy-autogen.json":            storedClusterPolicy(),
		"policy-autogen.json":                   storedNamespacedPolicy(),
	}
}

func storedPolicy() *policy.ValidatingAdmissionPolicy {
	return &policy.ValidatingAdmissionPolicy{
		ObjectMeta: storedMeta(),
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: "rules.example.com/v1", Kind: "ReplicaLimit"},
			MatchConstraints: storedMatch(),
			Validations: []admissionregistrationv1.Validation{{
				Expression:        "object.spec.replicas <= params.maxReplicas && variables.ready",
				Message:           "too many replicas",
				Reason:            ptr.To(metav1.StatusReasonInvalid),
				MessageExpression: "'at most ' + string(params.maxReplicas)",
			}},
			FailurePolicy:    ptr.To(admissionregistrationv1.Ignore),
			AuditAnnotations: []admissionregistrationv1.AuditAnnotation{{Key: "replicas", ValueExpression: "string(object.spec.replicas)"}},
			MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "not-system", Expression: "!request.userInfo.username.startsWith('system:')"}},
			Variables:        []admissionregistrationv1.Variable{{Name: "ready", Expression: "has(object.spec.replicas)"}},
		},
		Status: admissionregistrationv1.ValidatingAdmissionPolicyStatus{
			ObservedGeneration: 3,
			TypeChecking: &admissionregistrationv1.TypeChecking{
				ExpressionWarnings: []admissionregistrationv1.ExpressionWarning{{FieldRef: "spec.validations[0].expression", Warning: "undefined field 'maxReplicas'"}},
			},
			Conditions: []metav1.Condition{{
				Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: 3,
				LastTransitionTime: storedTime(4), Reason: "InForce", Message: "every server enforces it",
			}},
		},
	}
}

func storedBinding() *policy.ValidatingAdmissionPolicyBinding {
	return &policy.ValidatingAdmissionPolicyBinding{
		ObjectMeta: storedMeta(),
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "replicas.example.com",
			// Validation refuses a name beside a selector; both are here so that
			// both are seen to be read.
			ParamRef: &admissionregistrationv1.ParamRef{
				Name:                    "limit",
				Namespace:               "rules",
				Selector:                storedSelector(),
				ParameterNotFoundAction: ptr.To(admissionregistrationv1.DenyAction),
			},
			MatchResources:    storedMatch(),
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit},
		},
	}
}

func storedMatch() *admissionregistrationv1.MatchResources {
	rule := admissionregistrationv1.NamedRuleWithOperations{
		ResourceNames: []string{"web"},
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments", "deployments/scale"},
				Scope: ptr.To(admissionregistrationv1.NamespacedScope),
			},
		},
	}
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector:    storedSelector(),
		ObjectSelector:       storedSelector(),
		ResourceRules:        []admissionregistrationv1.NamedRuleWithOperations{rule},
		ExcludeResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule},
		MatchPolicy:          ptr.To(admissionregistrationv1.Exact),
	}
}

func storedSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{
		MatchLabels:      map[string]string{"environment": "test"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}},
	}
}

func storedMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:                       "replicas.example.com",
		GenerateName:               "replicas-",
		UID:                        "5bd8ba4e-2b0b-4a2e-9f4d-0c8d7f9f1a11",
		Generation:                 3,
		CreationTimestamp:          storedTime(1),
		DeletionTimestamp:          ptr.To(storedTime(2)),
		DeletionGracePeriodSeconds: ptr.To[int64](30),
		Labels:                     map[string]string{"team": "a"},
		Annotations:                map[string]string{"example.com/note": "<kept & \"quoted\">"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "0c8d7f9f-1a11-4a2e-9f4d-5bd8ba4e2b0b",
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
		Finalizers: []string{"example.com/hold"},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "policy.portcullis.dev/v1alpha1",
			Time: ptr.To(storedTime(3)), FieldsType: "FieldsV1", Subresource: "status",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:team":{}}}}`),
		}},
	}
}

func storedTime(second int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 11, 20, 10, 0, second, 0, time.UTC))
}
