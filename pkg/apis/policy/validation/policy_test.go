// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestValidateValidatingAdmissionPolicyMetadata(t *testing.T) {
	tests := []struct {
		name string
		meta metav1.ObjectMeta
		want []string
	}{
		{name: "valid", meta: metav1.ObjectMeta{Name: "a.example.com", Labels: map[string]string{"a": "b"}}},
		{name: "longest name", meta: metav1.ObjectMeta{Name: strings.Repeat("a", 253)}},
		{
			name: "no name",
			want: []string{`metadata.name: Required value: name or generateName is required`},
		},
		{
			name: "name with upper case",
			meta: metav1.ObjectMeta{Name: "Upper.example.com"},
			want: []string{`metadata.name: Invalid value: "Upper.example.com": ` + dns1123Subdomain},
		},
		{
			name: "name too long",
			meta: metav1.ObjectMeta{Name: strings.Repeat("a", 254)},
			want: []string{`metadata.name: Invalid value: "` + strings.Repeat("a", 254) + `": must be no more than 253 characters`},
		},
		{
			name: "namespace",
			meta: metav1.ObjectMeta{Name: "a", Namespace: "b"},
			want: []string{`metadata.namespace: Forbidden: not allowed on this type`},
		},
		{
			name: "label",
			meta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a b": "c"}},
			want: []string{`metadata.labels: Invalid value: "a b": ` + qualifiedName},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := validPolicy()
			p.ObjectMeta = test.meta
			expectErrors(t, ValidateValidatingAdmissionPolicy(p), test.want)
		})
	}
}

func TestValidateValidatingAdmissionPolicySpec(t *testing.T) {
	tests := []struct {
		name   string
		change func(*policySpec)
		want   []string
	}{
		{name: "valid", change: func(*policySpec) {}},
		{
			name:   "ignore failures",
			change: func(s *policySpec) { s.FailurePolicy = new(admissionregistrationv1.Ignore) },
		},
		{
			name:   "no failure policy",
			change: func(s *policySpec) { s.FailurePolicy = nil },
			want:   []string{`spec.failurePolicy: Required value`},
		},
		{
			name: "unknown failure policy",
			change: func(s *policySpec) {
				s.FailurePolicy = new(admissionregistrationv1.FailurePolicyType("Warn"))
			},
			want: []string{`spec.failurePolicy: Unsupported value: "Warn": supported values: "Fail", "Ignore"`},
		},
		{
			name:   "no match constraints",
			change: func(s *policySpec) { s.MatchConstraints = nil },
			want:   []string{`spec.matchConstraints: Required value`},
		},
		{
			name:   "no rules",
			change: func(s *policySpec) { s.MatchConstraints = validMatch() },
			want:   []string{`spec.matchConstraints.resourceRules: Required value`},
		},
		{
			name:   "neither validations nor audit annotations",
			change: func(s *policySpec) { s.Validations = nil },
			want: []string{
				`spec.validations: Required value: validations or auditAnnotations must contain at least one item`,
				`spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item`,
			},
		},
		{
			name: "audit annotations alone",
			change: func(s *policySpec) {
				s.Validations = nil
				s.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "a", ValueExpression: "'b'"}}
			},
		},
		{
			name: "every fault at once, in the order of upstream",
			change: func(s *policySpec) {
				s.FailurePolicy = nil
				s.ParamKind = &admissionregistrationv1.ParamKind{}
				s.MatchConstraints = nil
				s.MatchConditions = []admissionregistrationv1.MatchCondition{{}}
				s.Variables = []admissionregistrationv1.Variable{{}}
				s.Validations = []admissionregistrationv1.Validation{{}}
				s.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "a"}}
			},
			want: []string{
				`spec.failurePolicy: Required value`,
				`spec.paramKind.apiVersion: Required value`,
				`spec.paramKind.kind: Required value`,
				`spec.matchConstraints: Required value`,
				`spec.matchConditions[0].expression: Required value`,
				`spec.matchConditions[0].name: Required value`,
				`spec.variables[0].name: Required value: name is not specified`,
				`spec.variables[0].expression: Required value: expression is not specified`,
				`spec.validations[0].expression: Required value: expression is not specified`,
				`spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not specified`,
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			expectErrors(t, ValidateValidatingAdmissionPolicy(validPolicy(test.change)), test.want)
		})
	}
}

func TestValidateValidatingAdmissionPolicyUpdateMatchConditions(t *testing.T) {
	// A condition that an old version of the server may have accepted.
	broken := func(s *policySpec) {
		s.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "params", Expression: "params.a == 'b'"}}
	}
	undeclared := []string{"spec.matchConditions[0].expression: Invalid value: \"params.a == 'b'\": compilation failed: " +
		"ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.a == 'b'\n | ^"}
	tests := []struct {
		name                 string
		newChange, oldChange func(*policySpec)
		want                 []string
	}{
		{name: "nothing changes", newChange: broken, oldChange: broken},
		{
			name:      "something else changes",
			newChange: func(s *policySpec) { broken(s); s.FailurePolicy = new(admissionregistrationv1.Ignore) },
			oldChange: broken,
		},
		{
			name:      "the conditions change",
			newChange: broken,
			oldChange: func(*policySpec) {},
			want:      undeclared,
		},
		{
			name:      "the paramKind changes",
			newChange: broken,
			oldChange: func(s *policySpec) {
				broken(s)
				s.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
			},
			want: undeclared,
		},
		{
			name:      "the rest is validated",
			newChange: func(s *policySpec) { broken(s); s.FailurePolicy = nil },
			oldChange: broken,
			want:      []string{`spec.failurePolicy: Required value`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ValidateValidatingAdmissionPolicyUpdate(validPolicy(test.newChange), validPolicy(test.oldChange))
			expectErrors(t, got, test.want)
		})
	}
}

func TestValidateIsSafeForConcurrentUse(t *testing.T) {
	p := validPolicy(func(s *policySpec) {
		s.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "a", Expression: "request.operation == 'CREATE'"}}
		s.Variables = []admissionregistrationv1.Variable{{Name: "replicas", Expression: "object.spec.replicas"}}
		s.Validations = []admissionregistrationv1.Validation{{Expression: "variables.replicas < 3", MessageExpression: "string(variables.replicas)"}}
	})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if errs := ValidateValidatingAdmissionPolicy(p); len(errs) > 0 {
				t.Errorf("a valid policy is refused: %v", errs)
			}
		})
	}
	group.Wait()
}
