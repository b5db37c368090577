// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

func TestValidateValidatingAdmissionPolicyStatusUpdate(t *testing.T) {
	const path = "status.typeChecking.expressionWarnings[0]"
	warning := func(fieldRef, text string) admissionregistrationv1.ValidatingAdmissionPolicyStatus {
		return admissionregistrationv1.ValidatingAdmissionPolicyStatus{TypeChecking: &admissionregistrationv1.TypeChecking{
			ExpressionWarnings: []admissionregistrationv1.ExpressionWarning{{FieldRef: fieldRef, Warning: text}},
		}}
	}
	tests := []struct {
		name   string
		status admissionregistrationv1.ValidatingAdmissionPolicyStatus
		want   []string
	}{
		{name: "empty"},
		{name: "no warnings", status: admissionregistrationv1.ValidatingAdmissionPolicyStatus{TypeChecking: &admissionregistrationv1.TypeChecking{}}},
		{name: "warning", status: warning("spec.validations[0].expression", "text")},
		{name: "not a path", status: warning(" spec[foo] ", "text"), want: []string{
			path + `.fieldRef: Invalid value: "spec[foo]": invalid JSONPath: invalid array index foo`,
		}},
		{name: "empty warning", status: warning(" ", ""), want: []string{
			path + `.warning: Required value`,
			path + `.fieldRef: Required value`,
		}},
		{
			name: "condition",
			status: admissionregistrationv1.ValidatingAdmissionPolicyStatus{Conditions: []metav1.Condition{
				{Type: "Ready", Status: "Perhaps", Reason: "Because", LastTransitionTime: metav1.Now()},
			}},
			want: []string{`status.conditions[0].status: Unsupported value: "Perhaps": supported values: "False", "True", "Unknown"`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// The spec is not looked at.
			newPolicy := &policy.ValidatingAdmissionPolicy{Status: test.status}
			expectErrors(t, ValidateValidatingAdmissionPolicyStatusUpdate(newPolicy, validPolicy()), test.want)
		})
	}
}
