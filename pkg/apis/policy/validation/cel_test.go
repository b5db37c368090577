// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// futureEnvironment has a function test that only stored expressions may use.
func futureEnvironment(t *testing.T) *celEnvironment {
	t.Helper()
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 999),
		EnvOptions:        []cel.EnvOption{library.Test()},
	})
	if err != nil {
		t.Fatalf("extend the environment: %v", err)
	}
	return newCELEnvironment(base)
}

// TestUpdateRatchetsExpressions replaces a policy that uses test by one that
// does too, and one that does not by one that does.
func TestUpdateRatchetsExpressions(t *testing.T) {
	const undeclared = "undeclared reference to 'test' (in container '')"
	tests := []struct {
		name string
		set  func(spec *policySpec, expression string)
		// before is accepted, after uses test.
		before, after string
		want          string
	}{
		{
			name: "match condition",
			set: func(s *policySpec, expression string) {
				s.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "a", Expression: expression}}
			},
			before: "true", after: "test() == true",
			want: compileError("spec.matchConditions[0].expression", "test() == true", 5, undeclared),
		},
		{
			name: "variable",
			set: func(s *policySpec, expression string) {
				s.Variables = []admissionregistrationv1.Variable{{Name: "a", Expression: expression}}
			},
			before: "true", after: "test()",
			want: compileError("spec.variables[0].expression", "test()", 5, undeclared),
		},
		{
			name: "validation",
			set: func(s *policySpec, expression string) {
				s.Validations = []admissionregistrationv1.Validation{{Expression: expression}}
			},
			before: "true", after: "test() == true",
			want: compileError("spec.validations[0].expression", "test() == true", 5, undeclared),
		},
		{
			name: "validation in a policy with variables",
			set: func(s *policySpec, expression string) {
				s.Variables = []admissionregistrationv1.Variable{{Name: "a", Expression: "1"}}
				s.Validations = []admissionregistrationv1.Validation{{Expression: expression}}
			},
			before: "true", after: "variables.a == 1 && test()",
			want: compileError("spec.validations[0].expression", "variables.a == 1 && test()", 25, undeclared),
		},
		{
			name: "message expression",
			set: func(s *policySpec, expression string) {
				s.Validations = []admissionregistrationv1.Validation{{Expression: "true", MessageExpression: expression}}
			},
			before: "'a'", after: "string(test())",
			want: compileError("spec.validations[0].messageExpression", "string(test())", 12, undeclared),
		},
		{
			name: "audit annotation",
			set: func(s *policySpec, expression string) {
				s.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "a", ValueExpression: expression}}
			},
			before: "'a'", after: "string(test())",
			want: compileError("spec.auditAnnotations[0].valueExpression", "string(test())", 12, undeclared),
		},
	}
	env := futureEnvironment(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// The paramKind differs, so that match conditions are looked at.
			oldBefore := validPolicy(func(s *policySpec) { test.set(s, test.before) }, withParams)
			oldAfter := validPolicy(func(s *policySpec) { test.set(s, test.after) }, withParams)
			newAfter := validPolicy(func(s *policySpec) { test.set(s, test.after) })
			expectErrors(t, validatePolicyUpdate(newAfter, oldBefore, env), []string{test.want})
			expectErrors(t, validatePolicyUpdate(newAfter, oldAfter, env), nil)
			newIndented := validPolicy(func(s *policySpec) { test.set(s, test.after+"\n") })
			expectErrors(t, validatePolicyUpdate(newIndented, oldAfter, env), nil)
			expectErrors(t, validatePolicy(newAfter, policyValidator{environment: env}), []string{test.want})
		})
	}
}
