// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestCompileFails(t *testing.T) {
	tests := map[string]struct{ expression, want string }{
		"nothing":                {"", "at character 1: Incomplete expression"},
		"an open bracket":        {"length(a", `at character 9: `},
		"an open index":          {"a[", `at character 3: Expected "*", received: the end`},
		"a stray bracket":        {"a.b)", `at character 4: Unexpected token at the end of the expression: ")"`},
		"a stray character":      {"a # b", "at character 3: Unknown char: '#'"},
		"a bad literal":          {"`{a}`", "a literal, a number or a quoted name in it: invalid character"},
		"an unknown function":    {"a.b | nope(@)", `unknown function "nope"`},
		"in a reference":         {"map(&nope(@), a)", `unknown function "nope"`},
		"too few arguments":      {"join(',')", "function join takes 2 arguments, not 1"},
		"too many arguments":     {"length(a, b)", "function length takes 1 argument, not 2"},
		"counted in a reference": {"sort_by(a, &length())", "function length takes 1 argument, not 0"},
		"none of many":           {"not_null()", "function not_null takes at least 1 argument, not 0"},
		"counted in a filter":    {"a[?starts_with(b)]", "function starts_with takes 2 arguments, not 1"},
		"a reference alone":      {"&a", "an expression reference (&...) is possible only as an argument"},
		"a reference in a list":  {"[&a]", "an expression reference (&...) is possible only as an argument"},
		"a call of no name":      {"[0](a)", "brackets of a call do not follow the name of a function"},
		"a list of numbers":      {"not_null([1, a)", "brackets hold something that is neither an index nor a list"},
		"an open slice":          {"[::", "brackets hold something that is neither an index nor a list"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewCompiler().Compile(test.expression)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("Compile(%s): got error %v, want %s", test.expression, err, test.want)
			}
		})
	}
}

func TestGivenFunctions(t *testing.T) {
	mistake := errors.New("argument 1 is odd")
	compiler := NewCompiler(
		Function{Name: "sum", Params: takes(Array), Call: pure(func([]any) any { return "shadowed" })},
		Function{Name: "now", Call: pure(func(args []any) any { return int64(len(args)) })},
		Function{Name: "fails", Params: takes(Number), Call: func(context.Context, *Run, []any) (any, error) { return nil, mistake }},
		Function{Name: "apply", Params: takes(ExpressionReference, Any), Call: func(ctx context.Context, run *Run, args []any) (any, error) {
			r, ok := args[0].(*Reference)
			if !ok {
				return nil, errors.New("no reference")
			}
			return r.Search(ctx, run, args[1])
		}},
	)
	tests := map[string]struct{ expression, want, err string }{
		"shadows":                  {"sum(`[]`)", `"shadowed"`, ""},
		"no parameters":            {"now()", `0`, ""},
		"arguments nevertheless":   {"now(@, @)", `2`, ""},
		"the others remain":        {"length('abc')", `3`, ""},
		"a reference":              {"apply(&length(@), 'abc')", `3`, ""},
		"its name is put in front": {"fails(`1`)", "", "function fails: argument 1 is odd"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := compiler.Compile(test.expression)
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Search(t.Context(), plenty(), nil)
			if test.err != "" {
				if err == nil || err.Error() != test.err || !errors.Is(err, mistake) {
					t.Errorf("got error %v, want %s", err, test.err)
				}
				return
			}
			if same, _ := equal(t.Context(), plenty(), got, decode(t, test.want), 0); err != nil || !same {
				t.Errorf("got %v, error %v, want %s", got, err, test.want)
			}
		})
	}
}
