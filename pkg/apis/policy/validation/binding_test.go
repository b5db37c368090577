// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

func TestValidateValidatingAdmissionPolicyBinding(t *testing.T) {
	type actions = []admissionregistrationv1.ValidationAction
	const actionsPath = "spec.validationActions"
	tests := []struct {
		name   string
		change func(*policy.ValidatingAdmissionPolicyBinding)
		want   []string
	}{
		{name: "valid", change: func(*policy.ValidatingAdmissionPolicyBinding) {}},
		{
			name:   "name",
			change: func(b *policy.ValidatingAdmissionPolicyBinding) { b.Name = "!!!!" },
			want:   []string{`metadata.name: Invalid value: "!!!!": ` + dns1123Subdomain},
		},
		{
			name:   "no policy",
			change: func(b *policy.ValidatingAdmissionPolicyBinding) { b.Spec.PolicyName = "" },
			want:   []string{`spec.policyName: Required value`},
		},
		{
			name:   "name of the policy",
			change: func(b *policy.ValidatingAdmissionPolicyBinding) { b.Spec.PolicyName = "Not_Valid" },
			want:   []string{`spec.policyName: Invalid value: "Not_Valid": ` + dns1123Subdomain},
		},
		{
			name:   "match without rules",
			change: func(b *policy.ValidatingAdmissionPolicyBinding) { b.Spec.MatchResources = validMatch() },
		},
		{
			name: "match",
			change: func(b *policy.ValidatingAdmissionPolicyBinding) {
				b.Spec.MatchResources = validMatch(validRule(func(r *admissionregistrationv1.NamedRuleWithOperations) { r.APIGroups = nil }))
				b.Spec.MatchResources.MatchPolicy = nil
			},
			want: []string{
				`spec.matchResources.matchPolicy: Required value`,
				`spec.matchResources.resourceRules[0].apiGroups: Required value`,
			},
		},
		{
			name:   "warn and audit",
			change: func(b *policy.ValidatingAdmissionPolicyBinding) { b.Spec.ValidationActions = actions{"Warn", "Audit"} },
		},
		{
			name:   "no actions",
			change: func(b *policy.ValidatingAdmissionPolicyBinding) { b.Spec.ValidationActions = actions{} },
			want:   []string{actionsPath + `: Required value: at least one validation action is required`},
		},
		{
			name: "deny and warn, twice",
			change: func(b *policy.ValidatingAdmissionPolicyBinding) {
				b.Spec.ValidationActions = actions{"Deny", "Warn", "Warn"}
			},
			want: []string{
				actionsPath + `[2]: Duplicate value: "Warn"`,
				actionsPath + `: Invalid value: ["Deny","Warn","Warn"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)`,
			},
		},
		{
			name:   "unknown action, twice",
			change: func(b *policy.ValidatingAdmissionPolicyBinding) { b.Spec.ValidationActions = actions{"Log", "Log"} },
			want: []string{
				actionsPath + `[0]: Unsupported value: "Log": supported values: "Audit", "Deny", "Warn"`,
				actionsPath + `[1]: Unsupported value: "Log": supported values: "Audit", "Deny", "Warn"`,
				actionsPath + `[1]: Duplicate value: "Log"`,
			},
		},
		{
			name: "every fault at once, in the order of upstream",
			change: func(b *policy.ValidatingAdmissionPolicyBinding) {
				*b = policy.ValidatingAdmissionPolicyBinding{Spec: bindingSpec{
					ParamRef:       &admissionregistrationv1.ParamRef{Name: "a"},
					MatchResources: &admissionregistrationv1.MatchResources{},
				}}
			},
			want: []string{
				`metadata.name: Required value: name or generateName is required`,
				`spec.policyName: Required value`,
				`spec.paramRef.parameterNotFoundAction: Required value`,
				`spec.matchResources.matchPolicy: Required value`,
				`spec.matchResources.namespaceSelector: Required value`,
				`spec.matchResources.objectSelector: Required value`,
				actionsPath + `: Required value: at least one validation action is required`,
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := validBinding()
			test.change(b)
			expectErrors(t, ValidateValidatingAdmissionPolicyBinding(b), test.want)
			expectErrors(t, ValidateValidatingAdmissionPolicyBindingUpdate(b, validBinding()), test.want)
			expectErrors(t, ValidateValidatingAdmissionPolicyBindingUpdate(validBinding(), b), nil)
		})
	}
}
