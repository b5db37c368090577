// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func tooLong(path string, bytes int) []string {
	return []string{fmt.Sprintf("%s: Too long: the whole object may not be more than 1048576 bytes as JSON, it has %d: split it up", path, bytes)}
}

// padding returns a text with which an object of these bytes as JSON becomes one of size bytes.
func padding(t *testing.T, object any, size int) string {
	t.Helper()
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return strings.Repeat("a", size-len(encoded))
}

func TestValidateSize(t *testing.T) {
	withMessage := func(size int) func() field.ErrorList {
		return func() field.ErrorList {
			p := validPolicy(func(s *policySpec) { s.Validations[0].Message = "m" })
			p.Spec.Validations[0].Message += padding(t, p, size)
			return ValidateValidatingAdmissionPolicy(p)
		}
	}
	tests := []struct {
		name     string
		validate func() field.ErrorList
		want     []string
	}{
		{name: "biggest policy", validate: withMessage(maxObjectBytes)},
		{name: "policy too big", validate: withMessage(maxObjectBytes + 1), want: tooLong("spec", maxObjectBytes+1)},
		{
			name: "policy becomes too big",
			validate: func() field.ErrorList {
				p := validPolicy()
				p.Labels = map[string]string{"a": ""}
				p.Labels["a"] = padding(t, p, maxObjectBytes+1)
				return ValidateValidatingAdmissionPolicyUpdate(p, validPolicy())
			},
			want: tooLong("spec", maxObjectBytes+1),
		},
		{
			name: "status too big",
			validate: func() field.ErrorList {
				p := validPolicy()
				p.Status.TypeChecking = &admissionregistrationv1.TypeChecking{
					ExpressionWarnings: []admissionregistrationv1.ExpressionWarning{{FieldRef: "spec", Warning: ""}},
				}
				p.Status.TypeChecking.ExpressionWarnings[0].Warning = padding(t, p, maxObjectBytes+1)
				return ValidateValidatingAdmissionPolicyStatusUpdate(p, validPolicy())
			},
			want: tooLong("status", maxObjectBytes+1),
		},
		{
			name: "binding too big",
			validate: func() field.ErrorList {
				b := validBinding()
				b.Spec.PolicyName += padding(t, b, maxObjectBytes+1)
				return ValidateValidatingAdmissionPolicyBinding(b)
			},
			want: tooLong("spec", maxObjectBytes+1),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			expectErrors(t, test.validate(), test.want)
		})
	}
}
