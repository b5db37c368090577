// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// variables reads "name: expression" lines.
func variables(lines ...string) []admissionregistrationv1.Variable {
	list := make([]admissionregistrationv1.Variable, 0, len(lines))
	for _, line := range lines {
		name, expression, _ := strings.Cut(line, ": ")
		list = append(list, admissionregistrationv1.Variable{Name: name, Expression: expression})
	}
	return list
}

// judged returns the faults of a policy and what it finds, without an explanation
// and with one.
func judged(t *testing.T, s spec) (faults []string, findings [2][]verdict.Finding) {
	t.Helper()
	unit, errs := cel.New().Compile(t.Context(), stored(s))
	for _, err := range errs {
		faults = append(faults, err.Error())
	}
	for i, explain := range []*policy.Explain{nil, {}} {
		req := deployment()
		findings[i] = unit.Policy.Program.Evaluate(t.Context(), policy.Input{
			Request: req, Explain: explain, View: emptyCluster(t),
			Matched: cluster.Equivalent{Resource: req.RequestResource, Kind: req.RequestKind},
		})
	}
	return faults, findings
}

// TestCircles evaluates policies that would overflow the stack, which nothing
// recovers from.
func TestCircles(t *testing.T) {
	reading := spec{Validations: []admissionregistrationv1.Validation{{Expression: "variables.a == 1"}}}
	tests := []struct {
		name      string
		variables []admissionregistrationv1.Variable
		spec      spec
		want      string // field path and what begins the detail
	}{
		{name: "a name used again", variables: variables("a: dyn(1)", "a: dyn(variables.a)"), spec: reading, want: "spec.variables[1].expression: variables.a may read itself: a -> a: "},
		{name: "a name used again, optional", variables: variables("a: dyn(1)", "a: dyn(variables.?a)"), spec: reading, want: "spec.variables[1].expression: variables.a may read itself: a -> a: "},
		{name: "a name used again, has", variables: variables("a: dyn(1)", "a: dyn(has(variables.a))"), spec: reading, want: "spec.variables[1].expression: variables.a may read itself: a -> a: "},
		{name: "a name used again, in a comprehension", variables: variables("a: dyn(1)", "a: dyn([1].all(x, variables.a == x))"), spec: reading, want: "spec.variables[1].expression: variables.a may read itself: a -> a: "},
		{name: "a name used again, with a leading dot", variables: variables("a: dyn(1)", "a: dyn([1].all(variables, .variables.a == 1))"), spec: reading, want: "spec.variables[1].expression: variables.a may read itself: a -> a: "},
		{name: "dyn", variables: variables("a: dyn(variables).a"), spec: reading, want: "spec.variables[0].expression: variables.a may read itself: it uses "},
		{name: "index", variables: variables("a: dyn(variables)['a']"), spec: reading, want: "spec.variables[0].expression: variables.a may read itself: it uses "},
		{name: "list", variables: variables("a: dyn([variables])[0].a"), spec: reading, want: "spec.variables[0].expression: variables.a may read itself: it uses "},
		{name: "two", variables: variables("a: dyn(variables).b", "b: dyn(variables).a"), spec: reading, want: "spec.variables[0].expression: variables.a may read itself: it uses "},
		{name: "two, one by name", variables: variables("b: dyn(1)", "a: dyn(variables.b)", "b: dyn(variables.a)"), spec: reading, want: "spec.variables[2].expression: variables.b may read itself: b -> a -> b: "},
		{
			name: "message expression", variables: variables("a: dyn(variables).a"),
			spec: spec{Validations: []admissionregistrationv1.Validation{{Expression: "false", MessageExpression: "string(variables.a)"}}},
			want: "spec.variables[0].expression: variables.a may read itself: it uses ",
		},
		{
			name: "audit annotation", variables: variables("a: dyn(variables).a"),
			spec: spec{AuditAnnotations: []admissionregistrationv1.AuditAnnotation{{Key: "k", ValueExpression: "string(variables.a)"}}},
			want: "spec.variables[0].expression: variables.a may read itself: it uses ",
		},
		{
			name: "match condition", variables: variables("a: dyn(variables).a"),
			spec: spec{
				MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "c", Expression: "variables.a == 1"}},
				Validations:     []admissionregistrationv1.Validation{{Expression: "true"}},
			},
			want: "spec.variables[0].expression: variables.a may read itself: it uses ",
		},
		{
			name: "read by nothing", variables: variables("a: dyn(variables).a"),
			spec: spec{Validations: []admissionregistrationv1.Validation{{Expression: "true"}}},
			want: "spec.variables[0].expression: variables.a may read itself: it uses ",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.spec.Variables = test.variables
			faults, findings := judged(t, test.spec)
			place, detail, _ := strings.Cut(test.want, ": ")
			if !slices.ContainsFunc(faults, func(fault string) bool {
				return strings.HasPrefix(fault, place+": Invalid value: ") && strings.Contains(fault, ": "+detail)
			}) {
				t.Errorf("faults %q, want one that begins with %q", faults, test.want)
			}
			for _, got := range findings {
				if len(got) != 1 || got[0].Kind != verdict.Misconfigured || !strings.HasPrefix(got[0].Message, "failed to configure policy: "+test.want) {
					t.Errorf("findings %+v, want one of Misconfigured with %q", got, test.want)
				}
			}
		})
	}
}

// TestCirclesThatDoNotCompile: what upstream does not evaluate is no circle here,
// though an explanation that declared all variables to all would find one.
func TestCirclesThatDoNotCompile(t *testing.T) {
	for _, list := range [][]admissionregistrationv1.Variable{
		variables("a: dyn(variables.a)"),
		variables("a: dyn(variables.b)", "b: dyn(variables.a)"),
	} {
		faults, findings := judged(t, spec{Variables: list, Validations: []admissionregistrationv1.Validation{{Expression: "variables.a == 1"}}})
		if len(faults) != 1 || !strings.Contains(faults[0], "undefined field") {
			t.Errorf("%v: faults %q, want that a field is undefined", list, faults)
		}
		for _, got := range findings {
			if len(got) != 1 || got[0].Kind != verdict.Error || !strings.Contains(got[0].Message, "fails to compile") {
				t.Errorf("%v: findings %+v, want an error of the rule", list, got)
			}
		}
	}
}

// TestNoCircles evaluates what only looks like a circle.
func TestNoCircles(t *testing.T) {
	tests := []struct {
		name      string
		variables []admissionregistrationv1.Variable
		rule      string
	}{
		{"a name used again", variables("a: object.spec.replicas", "b: variables.a + 1", "a: object.spec.replicas + 100"), "variables.b == 107"},
		{"a definition that does not count", variables("a: dyn(1)", "a: dyn(variables.a)", "a: dyn(2)"), "variables.a == 2"},
		{"a variable of a comprehension", variables("a: [{'a': 1}].all(variables, variables.a == 1)"), "variables.a"},
		{"two variables of a comprehension", variables("a: {'k': 1}.all(variables, v, variables == 'k')"), "variables.a"},
		{"a rule that uses them all", variables("a: 1"), "dyn(variables).a == 1 && dyn(variables)['a'] == 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			faults, findings := judged(t, spec{Variables: test.variables, Validations: []admissionregistrationv1.Validation{{Expression: test.rule}}})
			if len(faults) > 0 {
				t.Errorf("faults %q, want none", faults)
			}
			want := []verdict.Finding{{Kind: verdict.Pass, Rule: "validations[0]", Expression: test.rule}}
			for _, got := range findings {
				if diff := cmp.Diff(want, traceless(got)); diff != "" {
					t.Errorf("findings (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestChains evaluates as many variables inside each other as may be, and one
// more.
func TestChains(t *testing.T) {
	chain := func(length int) spec {
		list := variables("v0: dyn(1)")
		for i := 1; i < length; i++ {
			list = append(list, variables(fmt.Sprintf("v%d: variables.v%d", i, i-1))...)
		}
		rule := fmt.Sprintf("variables.v%d == 1", length-1)
		return spec{Variables: list, Validations: []admissionregistrationv1.Validation{{Expression: rule}}}
	}
	faults, findings := judged(t, chain(1_000))
	if len(faults) > 0 || findings[0][0].Kind != verdict.Pass || findings[1][0].Kind != verdict.Pass {
		t.Errorf("at the limit: faults %q, findings %+v; want none and Pass", faults, findings)
	}
	faults, findings = judged(t, chain(1_001))
	if len(faults) != 1 || findings[0][0].Kind != verdict.Misconfigured || findings[1][0].Kind != verdict.Misconfigured {
		t.Errorf("beyond the limit: faults %q, findings %+v; want one and Misconfigured", faults, findings)
	}
}
