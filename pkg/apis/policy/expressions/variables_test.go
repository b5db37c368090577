// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/expressions"
)

func parsing() *cel.Env {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
}

// variables reads "name: expression" lines.
func variables(lines ...string) []admissionregistrationv1.Variable {
	list := make([]admissionregistrationv1.Variable, 0, len(lines))
	for _, line := range lines {
		name, expression, _ := strings.Cut(line, ": ")
		list = append(list, admissionregistrationv1.Variable{Name: name, Expression: expression})
	}
	return list
}

func TestCheckVariables(t *testing.T) {
	const (
		all  = ": it uses `variables` as a whole: write variables.name for each variable that it reads"
		mend = ": give each variable a name of its own and let it read only those above it"
	)
	tests := []struct {
		name      string
		variables []string
		want      []string // index and what is told
	}{
		{name: "none"},
		{name: "each reads those above", variables: []string{"a: object.a", "b: variables.a", "c: variables.a + variables.b"}},
		{name: "itself by name", variables: []string{"a: variables.a"}, want: []string{"0 variables.a may read itself: a -> a" + mend}},
		{name: "a name used again", variables: []string{"a: dyn(1)", "a: dyn(variables.a)"}, want: []string{"1 variables.a may read itself: a -> a" + mend}},
		{
			name:      "a name used again, through another",
			variables: []string{"a: dyn(1)", "b: dyn(variables.a)", "a: variables.b"},
			want:      []string{"2 variables.a may read itself: a -> b -> a" + mend},
		},
		{name: "a name used again without a circle", variables: []string{"a: object.a", "b: variables.a + 1", "a: object.a + 100"}},
		{name: "a definition that does not count", variables: []string{"a: dyn(1)", "a: dyn(variables.a)", "a: 2"}},
		{name: "dyn", variables: []string{"a: dyn(variables).a"}, want: []string{"0 variables.a may read itself" + all}},
		{name: "index", variables: []string{"a: dyn(variables)['a']"}, want: []string{"0 variables.a may read itself" + all}},
		{name: "list", variables: []string{"a: dyn([variables])[0].a"}, want: []string{"0 variables.a may read itself" + all}},
		{name: "map", variables: []string{"a: dyn({'v': variables}).v.a"}, want: []string{"0 variables.a may read itself" + all}},
		{name: "map key", variables: []string{"a: {variables: 1}"}, want: []string{"0 variables.a may read itself" + all}},
		{name: "bare", variables: []string{"a: 1", "b: variables"}, want: []string{"1 variables.b may read itself" + all}},
		{name: "method", variables: []string{"a: variables.orValue(1)"}, want: []string{"0 variables.a may read itself" + all}},
		{name: "object", variables: []string{"a: Object{spec: variables}"}, want: []string{"0 variables.a may read itself" + all}},
		{name: "ranged over", variables: []string{"a: dyn(variables).all(k, true)"}, want: []string{"0 variables.a may read itself" + all}},
		{name: "in a comprehension", variables: []string{"a: [1].all(x, dyn(variables).a)"}, want: []string{"0 variables.a may read itself" + all}},
		{name: "in the condition of a comprehension", variables: []string{"a: [1].map(x, variables.a, x)"}, want: []string{"0 variables.a may read itself: a -> a" + mend}},
		{name: "optional index", variables: []string{"a: dyn(variables)[?'a']"}, want: []string{"0 variables.a may read itself" + all}},
		{name: "optional field", variables: []string{"a: variables.?a"}, want: []string{"0 variables.a may read itself: a -> a" + mend}},
		{name: "optional field of another", variables: []string{"a: 1", "b: variables.?a"}},
		{name: "optional field of a literal", variables: []string{"a: {'a': 1}.?a"}},
		{name: "has", variables: []string{"a: has(variables.a)"}, want: []string{"0 variables.a may read itself: a -> a" + mend}},
		{name: "part of itself", variables: []string{"a: variables.a.b['c'].d()"}, want: []string{"0 variables.a may read itself: a -> a" + mend}},
		{name: "escaped", variables: []string{"in: variables.__in__"}, want: []string{"0 variables.in may read itself: in -> in" + mend}},
		{
			name:      "two of each other",
			variables: []string{"a: dyn(variables).b", "b: variables.a"},
			want:      []string{"0 variables.a may read itself" + all},
		},
		{
			name:      "two of each other by name",
			variables: []string{"a: variables.b", "b: variables.a"},
			want:      []string{"1 variables.b may read itself: b -> a -> b" + mend},
		},
		{
			name:      "behind others",
			variables: []string{"x: variables.a", "a: variables.b", "b: variables.a", "c: variables.c", "y: variables.x"},
			want: []string{
				"2 variables.b may read itself: b -> a -> b" + mend,
				"3 variables.c may read itself: c -> c" + mend,
			},
		},
		{name: "one of a comprehension", variables: []string{"a: object.list.map(variables, variables.a)"}},
		{name: "two of a comprehension", variables: []string{"a: object.map.transformMap(k, variables, variables.a + k)"}},
		{
			name:      "the range of a comprehension that hides it",
			variables: []string{"a: variables.a.map(variables, variables.x)"},
			want:      []string{"0 variables.a may read itself: a -> a" + mend},
		},
		{
			name:      "behind a comprehension that hides it",
			variables: []string{"a: [1].all(variables, variables == 1) && variables.a"},
			want:      []string{"0 variables.a may read itself: a -> a" + mend},
		},
		{
			name:      "in spite of a comprehension that hides it",
			variables: []string{"a: [1].all(variables, .variables.a == variables)"},
			want:      []string{"0 variables.a may read itself: a -> a" + mend},
		},
		{name: "the same word elsewhere", variables: []string{"a: object.variables.a + 'variables.a'"}},
		{name: "an unknown name", variables: []string{"a: variables.b"}},
		{name: "not an expression", variables: []string{"a: variables.a +"}},
		{
			name:      "a long circle",
			variables: []string{"a: variables.j", "b: variables.a", "c: variables.b", "d: variables.c", "e: variables.d", "f: variables.e", "g: variables.f", "h: variables.g", "i: variables.h", "j: variables.i"},
			want:      []string{"9 variables.j may read itself: j -> i -> h -> g -> f -> e -> d -> c -> ... -> j" + mend},
		},
	}
	env := parsing()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, fault := range expressions.CheckVariables(env, variables(test.variables...), nil) {
				got = append(got, fmt.Sprintf("%d %s", fault.Index, fault.Detail))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(test.want, "\n  "))
			}
		})
	}
}

// TestCheckVariablesSkips leaves out a variable of a circle.
func TestCheckVariablesSkips(t *testing.T) {
	list := variables("a: variables.b", "b: variables.a")
	if faults := expressions.CheckVariables(parsing(), list, func(i int) bool { return i == 0 }); len(faults) > 0 {
		t.Errorf("got %v, want none", faults)
	}
}

func chainOf(length int) []admissionregistrationv1.Variable {
	list := variables("v0: 1")
	for i := 1; i < length; i++ {
		list = append(list, variables(fmt.Sprintf("v%d: variables.v%d", i, i-1))...)
	}
	return list
}

func TestCheckVariablesDepth(t *testing.T) {
	env := parsing()
	if faults := expressions.CheckVariables(env, chainOf(expressions.MaxVariableDepth), nil); len(faults) > 0 {
		t.Errorf("at the limit: got %v, want none", faults)
	}
	for _, length := range []int{expressions.MaxVariableDepth + 1, 5 * expressions.MaxVariableDepth} {
		list := chainOf(length)
		slices.Reverse(list) // the order of the definitions does not matter
		want := []expressions.Fault{{
			Index:  length - 1 - expressions.MaxVariableDepth,
			Detail: "variables.v1000 needs more than 1000 variables that read each other: let fewer of them build on others",
		}}
		if got := expressions.CheckVariables(env, list, nil); !slices.Equal(got, want) {
			t.Errorf("%d variables: got %v, want %v", length, got, want)
		}
	}
}

// TestCheckVariablesTellsFew: what is told does not grow with the policy.
func TestCheckVariablesTellsFew(t *testing.T) {
	var list []admissionregistrationv1.Variable
	for i := range 1_000 {
		list = append(list, variables(fmt.Sprintf("v%d: variables.v%d", i, i))...)
	}
	if got := len(expressions.CheckVariables(parsing(), list, nil)); got != 8 {
		t.Errorf("got %d faults, want 8", got)
	}
}
