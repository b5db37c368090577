// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// withVariables reads "name: expression" lines.
func withVariables(lines ...string) func(*policySpec) {
	return func(s *policySpec) {
		s.Variables = nil
		for _, line := range lines {
			name, expression, _ := strings.Cut(line, ": ")
			s.Variables = append(s.Variables, admissionregistrationv1.Variable{Name: name, Expression: expression})
		}
	}
}

// circle is the error of a variable that is in a circle by name.
func circle(i int, expression, circle string) string {
	name, _, _ := strings.Cut(circle, " ")
	return fmt.Sprintf("spec.variables[%d].expression: Invalid value: %q: variables.%s may read itself: %s: "+
		"give each variable a name of its own and let it read only those above it", i, expression, name, circle)
}

// whole is the error of a variable that uses the variables as a whole.
func whole(i int, expression, name string) string {
	return fmt.Sprintf("spec.variables[%d].expression: Invalid value: %q: variables.%s may read itself: "+
		"it uses `variables` as a whole: write variables.name for each variable that it reads", i, expression, name)
}

func TestCircles(t *testing.T) {
	tests := []struct {
		name      string
		variables []string
		want      []string
	}{
		{name: "a name used again", variables: []string{"a: dyn(1)", "a: dyn(variables.a)"}, want: []string{circle(1, "dyn(variables.a)", "a -> a")}},
		{name: "dyn", variables: []string{"a: dyn(variables).a"}, want: []string{whole(0, "dyn(variables).a", "a")}},
		{name: "index", variables: []string{"a: dyn(variables)['a']"}, want: []string{whole(0, "dyn(variables)['a']", "a")}},
		{name: "list", variables: []string{"a: dyn([variables])[0].a"}, want: []string{whole(0, "dyn([variables])[0].a", "a")}},
		{
			name: "two of each other", variables: []string{"a: dyn(variables).b", "b: dyn(variables).a"},
			want: []string{whole(0, "dyn(variables).b", "a"), whole(1, "dyn(variables).a", "b")},
		},
		{
			name: "two of each other by name", variables: []string{"b: dyn(1)", "a: variables.b", "b: dyn(variables.a)"},
			want: []string{circle(2, "dyn(variables.a)", "b -> a -> b")},
		},
		{
			name: "what does not compile is told once", variables: []string{"a: variables.a"},
			want: []string{compileError("spec.variables[0].expression", "variables.a", 10, "undefined field 'a'")},
		},
		{name: "a name used again without a circle", variables: []string{"a: object.a", "b: variables.a + 1", "a: object.a + 100"}},
		{name: "one of a comprehension", variables: []string{"a: object.list.map(variables, variables.a)"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			expectErrors(t, ValidateValidatingAdmissionPolicy(validPolicy(withVariables(test.variables...))), test.want)
		})
	}
}

// TestUpdateOfCircles: a policy that is stored with a circle stays writable, and
// can be mended; what is written anew is looked at.
func TestUpdateOfCircles(t *testing.T) {
	before := validPolicy(withVariables("a: dyn(1)", "a: dyn(variables.a)"))
	tests := []struct {
		name   string
		change func(*policySpec)
		want   []string
	}{
		{"the same variables", func(s *policySpec) { s.FailurePolicy = new(admissionregistrationv1.Ignore) }, nil},
		{"mended", withVariables("a: dyn(1)", "b: dyn(variables.a)"), nil},
		{"removed", withVariables(), nil},
		{"another one added", withVariables("a: dyn(1)", "a: dyn(variables.a)", "b: 1"), []string{circle(1, "dyn(variables.a)", "a -> a")}},
		{"another circle", withVariables("a: dyn(variables).a"), []string{whole(0, "dyn(variables).a", "a")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			after := before.DeepCopy()
			test.change(&after.Spec)
			expectErrors(t, ValidateValidatingAdmissionPolicyUpdate(after, before), test.want)
		})
	}
	t.Run("added to a policy without one", func(t *testing.T) {
		after := validPolicy(withVariables("a: dyn(1)", "a: dyn(variables.a)"))
		expectErrors(t, ValidateValidatingAdmissionPolicyUpdate(after, validPolicy(withVariables("a: dyn(1)"))),
			[]string{circle(1, "dyn(variables.a)", "a -> a")})
	})
}
