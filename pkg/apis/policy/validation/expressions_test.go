// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// compileError is the text that the compiler gives for a fault in the first
// line of the expression, which has no other lines.
func compileError(path, expression string, column int, fault string) string {
	return fmt.Sprintf("%s: Invalid value: %q: compilation failed: ERROR: <input>:1:%d: %s\n | %s\n | %s^",
		path, expression, column, fault, expression, strings.Repeat(".", column-1))
}

func withParams(s *policySpec) {
	s.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
}

func TestValidateValidations(t *testing.T) {
	type validation = admissionregistrationv1.Validation
	const path = "spec.validations[0].expression"
	const messagePath = "spec.validations[0].messageExpression"
	tests := []struct {
		name       string
		validation validation
		want       []string
	}{
		{name: "every name", validation: validation{
			Expression: "object != oldObject && request.name == 'a' && namespaceObject == null && authorizer.path('/').check('get').allowed()",
			Message:    "a message",
			Reason:     new(metav1.StatusReasonForbidden),
		}},
		{name: "not a bool", validation: validation{Expression: "'true'"}, want: []string{
			path + `: Invalid value: "'true'": must evaluate to bool but got string`,
		}},
		{name: "dyn", validation: validation{Expression: "object.spec.flag"}, want: []string{
			path + `: Invalid value: "object.spec.flag": must evaluate to bool but got dyn`,
		}},
		{name: "blank", validation: validation{Expression: " \n"}, want: []string{
			path + `: Required value: expression is not specified`,
		}},
		{name: "syntax", validation: validation{Expression: "(object.x"}, want: []string{
			compileError(path, "(object.x", 10, "Syntax error: missing ')' at '<EOF>'"),
		}},
		{name: "unknown function", validation: validation{Expression: "object.x.frob() == 1"}, want: []string{
			compileError(path, "object.x.frob() == 1", 14, "undeclared reference to 'frob' (in container '')"),
		}},
		{name: "one that panics", validation: validation{Expression: "{b'a': 1}.size() == 1", MessageExpression: "string({b'a': 1}.size())"}, want: []string{
			path + `: Internal error: compiling the expression panicked: runtime error: hash of unhashable type types.Bytes`,
			messagePath + `: Internal error: compiling the expression panicked: runtime error: hash of unhashable type types.Bytes`,
		}},
		{name: "no params", validation: validation{Expression: "params.x == 1"}, want: []string{
			compileError(path, "params.x == 1", 1, "undeclared reference to 'params' (in container '')"),
		}},
		{name: "no variables", validation: validation{Expression: "variables.x == 1"}, want: []string{
			compileError(path, "variables.x == 1", 1, "undeclared reference to 'variables' (in container '')"),
		}},
		{name: "columns count white space", validation: validation{Expression: "  params.x == 1"}, want: []string{
			compileError(path, "  params.x == 1", 3, "undeclared reference to 'params' (in container '')"),
		}},
		{name: "unknown field of the request", validation: validation{Expression: "has(request.object)"}, want: []string{
			compileError(path, "has(request.object)", 4, "undefined field 'object'"),
		}},
		{name: "library of mutations", validation: validation{Expression: "jsonpatch.escapeKey('a/b') == 'x'"}, want: []string{
			compileError(path, "jsonpatch.escapeKey('a/b') == 'x'", 1, "undeclared reference to 'jsonpatch' (in container '')") +
				"\nERROR: <input>:1:20: undeclared reference to 'escapeKey' (in container '')\n | jsonpatch.escapeKey('a/b') == 'x'\n | ...................^",
		}},
		{name: "literal", validation: validation{Expression: "duration('1d') > duration('1h')"}, want: []string{
			compileError(path, "duration('1d') > duration('1h')", 10, "invalid duration argument"),
		}},
		{name: "no program", validation: validation{Expression: "type(object.x) == timestamp"}, want: []string{
			path + `: Internal error: program instantiation failed: reference to undefined type: timestamp`,
		}},
		{name: "message expression", validation: validation{Expression: "true", MessageExpression: "'got ' + string(object.x)"}},
		{name: "blank message expression", validation: validation{Expression: "true", MessageExpression: "  "}, want: []string{
			messagePath + `: Invalid value: "  ": must be non-empty if specified`,
		}},
		{name: "message expression of another type", validation: validation{Expression: "true", MessageExpression: "0 == 0"}, want: []string{
			messagePath + `: Invalid value: "0 == 0": must evaluate to string but got bool`,
		}},
		{name: "message expression with authorizer", validation: validation{Expression: "true", MessageExpression: "string(authorizer)"}, want: []string{
			compileError(messagePath, "string(authorizer)", 8, "undeclared reference to 'authorizer' (in container '')"),
		}},
		{name: "line breaks around the message", validation: validation{Expression: "true", Message: "\na message\r\n"}},
		{name: "blank message", validation: validation{Expression: "true", Message: " "}, want: []string{
			`spec.validations[0].message: Invalid value: " ": must be non-empty if specified`,
		}},
		{name: "line break", validation: validation{Expression: "true", Message: " a\nb"}, want: []string{
			`spec.validations[0].message: Invalid value: " a\nb": must not contain line breaks`,
		}},
		{name: "carriage return", validation: validation{Expression: "true", Message: "a\rb"}, want: []string{
			`spec.validations[0].message: Invalid value: "a\rb": must not contain line breaks`,
		}},
		{name: "unsupported reason", validation: validation{Expression: "true", Reason: new(metav1.StatusReasonUnauthorized)}, want: []string{
			`spec.validations[0].reason: Unsupported value: "Unauthorized": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"`,
		}},
		{name: "empty reason", validation: validation{Expression: "true", Reason: new(metav1.StatusReason(""))}, want: []string{
			`spec.validations[0].reason: Unsupported value: "": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"`,
		}},
		{
			name:       "all faults of one validation",
			validation: validation{MessageExpression: "1", Message: "a\nb", Reason: new(metav1.StatusReason("X"))},
			want: []string{
				path + `: Required value: expression is not specified`,
				messagePath + `: Invalid value: "1": must evaluate to string but got int`,
				`spec.validations[0].message: Invalid value: "a\nb": must not contain line breaks`,
				`spec.validations[0].reason: Unsupported value: "X": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"`,
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := validPolicy(func(s *policySpec) { s.Validations = []validation{test.validation} })
			expectErrors(t, ValidateValidatingAdmissionPolicy(p), test.want)
		})
	}
}

func TestValidateMatchConditions(t *testing.T) {
	type condition = admissionregistrationv1.MatchCondition
	const path = "spec.matchConditions[0].expression"
	numbered := func(count int) []condition {
		conditions := make([]condition, 0, count)
		for i := range count {
			conditions = append(conditions, condition{Name: fmt.Sprintf("c%d", i), Expression: "true"})
		}
		return conditions
	}
	tests := []struct {
		name       string
		conditions []condition
		change     func(*policySpec)
		want       []string
	}{
		{name: "valid", conditions: []condition{{Name: "example.com/a", Expression: "authorizer.path('/').check('get').allowed()"}}},
		{name: "params", conditions: []condition{{Name: "a", Expression: "params.x == 'b'"}}, change: withParams},
		{name: "no params", conditions: []condition{{Name: "a", Expression: "params.x == 'b'"}}, want: []string{
			compileError(path, "params.x == 'b'", 1, "undeclared reference to 'params' (in container '')"),
		}},
		{
			name:       "variables, though there are some",
			conditions: []condition{{Name: "a", Expression: "variables.x == 1"}},
			change: func(s *policySpec) {
				s.Variables = []admissionregistrationv1.Variable{{Name: "x", Expression: "1"}}
			},
			want: []string{compileError(path, "variables.x == 1", 1, "undeclared reference to 'variables' (in container '')")},
		},
		{name: "columns do not count white space", conditions: []condition{{Name: "a", Expression: "  oldobject == null "}}, want: []string{
			compileError(path, "oldobject == null", 1, "undeclared reference to 'oldobject' (in container '')"),
		}},
		{name: "not a bool", conditions: []condition{{Name: "a", Expression: "1"}}, want: []string{
			path + `: Invalid value: "1": must evaluate to bool but got int`,
		}},
		{name: "no name", conditions: []condition{{Expression: "true"}, {Expression: "true"}}, want: []string{
			`spec.matchConditions[0].name: Required value`,
			`spec.matchConditions[1].name: Required value`,
		}},
		{name: "no expression", conditions: []condition{{Name: "a", Expression: "\t"}}, want: []string{path + `: Required value`}},
		{name: "name", conditions: []condition{{Name: "a b", Expression: "true"}}, want: []string{
			`spec.matchConditions[0].name: Invalid value: "a b": ` + qualifiedName,
		}},
		{name: "name twice", conditions: []condition{{Name: "a", Expression: "true"}, {Name: "a"}}, want: []string{
			`spec.matchConditions[1].expression: Required value`,
			`spec.matchConditions[1].name: Duplicate value: "a"`,
		}},
		{name: "64", conditions: numbered(64)},
		{name: "65", conditions: numbered(65), want: []string{`spec.matchConditions: Too many: 65: must have at most 64 items`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := validPolicy(func(s *policySpec) { s.MatchConditions = test.conditions })
			if test.change != nil {
				test.change(&p.Spec)
			}
			expectErrors(t, ValidateValidatingAdmissionPolicy(p), test.want)
		})
	}
}

func TestValidateVariables(t *testing.T) {
	type variable = admissionregistrationv1.Variable
	const invalid = ": must be a valid CEL identifier"
	tests := []struct {
		name      string
		variables []variable
		// expression is that of the only validation, true when empty.
		expression string
		want       []string
	}{
		{
			name:      "one that panics",
			variables: []variable{{Name: "a", Expression: "{b'a': 1}.size()"}, {Name: "b", Expression: "variables.a == 1"}},
			want:      []string{`spec.variables[0].expression: Internal error: compiling the expression panicked: runtime error: hash of unhashable type types.Bytes`},
		},
		{
			name:       "chain",
			variables:  []variable{{Name: "a", Expression: "1"}, {Name: "_b2", Expression: "variables.a + 1"}},
			expression: "variables._b2 == 2",
		},
		{name: "dyn", variables: []variable{{Name: "a", Expression: "object.spec"}}, expression: "variables.a.b == 1"},
		{name: "same name twice", variables: []variable{{Name: "a", Expression: "1"}, {Name: "a", Expression: "'b'"}}, expression: "variables.a == 'b'"},
		{name: "blank", variables: []variable{{Name: "  ", Expression: " "}}, want: []string{
			`spec.variables[0].name: Required value: name is not specified`,
			`spec.variables[0].expression: Required value: expression is not specified`,
		}},
		{name: "digit", variables: []variable{{Name: "4ever", Expression: "1"}}, want: []string{`spec.variables[0].name: Invalid value: "4ever"` + invalid}},
		{name: "dash", variables: []variable{{Name: "a-b", Expression: "1"}}, want: []string{`spec.variables[0].name: Invalid value: "a-b"` + invalid}},
		{name: "dot", variables: []variable{{Name: "a.b", Expression: "1"}}, want: []string{`spec.variables[0].name: Invalid value: "a.b"` + invalid}},
		{name: "line break at the end", variables: []variable{{Name: "a\n", Expression: "1"}}, want: []string{`spec.variables[0].name: Invalid value: "a\n"` + invalid}},
		{name: "not ASCII", variables: []variable{{Name: "змінна", Expression: "1"}}, want: []string{`spec.variables[0].name: Invalid value: "змінна"` + invalid}},
		{name: "literal", variables: []variable{{Name: "null", Expression: "1"}}, want: []string{`spec.variables[0].name: Invalid value: "null"` + invalid}},
		{name: "reserved word", variables: []variable{{Name: "namespace", Expression: "1"}}, want: []string{`spec.variables[0].name: Invalid value: "namespace"` + invalid}},
		{name: "not reserved", variables: []variable{{Name: "True", Expression: "1"}, {Name: "type", Expression: "1"}}},
		{
			name:      "used before it is defined",
			variables: []variable{{Name: "a", Expression: "variables.b + 1"}, {Name: "b", Expression: "1"}},
			want:      []string{compileError("spec.variables[0].expression", "variables.b + 1", 10, "undefined field 'b'")},
		},
		{
			name:       "not defined",
			variables:  []variable{{Name: "a", Expression: "1"}},
			expression: "variables.zz == 1",
			want:       []string{compileError("spec.validations[0].expression", "variables.zz == 1", 10, "undefined field 'zz'")},
		},
		{
			name:       "of another type",
			variables:  []variable{{Name: "a", Expression: "1"}},
			expression: "variables.a == 'x'",
			want:       []string{compileError("spec.validations[0].expression", "variables.a == 'x'", 13, "found no matching overload for '_==_' applied to '(int, string)'")},
		},
		{
			name:       "a broken variable does not break its users",
			variables:  []variable{{Name: "a", Expression: "114 + '514'"}},
			expression: "variables.a == 'x'",
			want:       []string{compileError("spec.variables[0].expression", "114 + '514'", 5, "found no matching overload for '_+_' applied to '(int, string)'")},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := validPolicy(func(s *policySpec) {
				s.Variables = test.variables
				s.Validations[0].Expression = "true"
				if test.expression != "" {
					s.Validations[0].Expression = test.expression
				}
			})
			expectErrors(t, ValidateValidatingAdmissionPolicy(p), test.want)
		})
	}
}
