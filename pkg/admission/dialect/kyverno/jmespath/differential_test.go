// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	upstream "github.com/kyverno/go-jmespath"
	kjson "sigs.k8s.io/json"
)

// generator makes expressions and data. When it is narrow, objects have at most one
// field, so that the order of fields does not show.
type generator struct {
	*rand.Rand
	narrow bool
}

func (g *generator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g *generator) data(depth int) any {
	kind := g.IntN(8)
	if depth > 0 {
		kind = g.IntN(16)
	}
	switch {
	case kind == 0:
		return nil
	case kind == 1:
		return g.IntN(2) == 0
	case kind < 4:
		return int64(g.IntN(7) - 3)
	case kind == 4:
		return float64(g.IntN(9)-4) / 2
	case kind < 8:
		return g.pick("", "a", "b", "ab", "3", "1.5", "ä€", "a,b")
	case kind < 12:
		list := make([]any, g.IntN(4))
		same := g.IntN(2) == 0
		for i := range list {
			list[i] = g.data(depth - 1)
			if same && i > 0 && g.IntN(4) > 0 {
				list[i] = list[0]
			}
		}
		return list
	}
	object := map[string]any{}
	width := g.IntN(4)
	if g.narrow {
		width = min(width, 1)
	}
	for range width {
		object[g.pick("a", "b", "c", "d")] = g.data(depth - 1)
	}
	return object
}

func (g *generator) leaf() string {
	if g.narrow && g.IntN(8) == 0 {
		return g.pick("`[{\"a\": 2}, {\"a\": 1}, {\"a\": 2}]`", "`{\"a\": [1, null]}`", "`{\"a\": {\"a\": 1}}`")
	}
	if !g.narrow && g.IntN(8) == 0 {
		return g.pick("`[{\"a\": 2}, {\"a\": 1}, {\"a\": 2, \"b\": 0}]`", "`{\"a\": [1, null], \"b\": 2}`")
	}
	return g.pick("a", "b", "c", "d", "missing", "@", "`1`", "`-2.5`", "`null`", "`true`", "`[]`", "`{}`",
		"'a'", "''", "`[3, 1, 2]`", "`[\"b\", \"a\"]`", `"a"`)
}

func (g *generator) expression(depth int) string {
	if depth <= 0 {
		return g.leaf()
	}
	x := func() string { return g.expression(depth - 1) }
	switch g.IntN(16) {
	case 0, 1:
		return x() + "." + g.pick("a", "b", "c", "missing")
	case 2:
		return fmt.Sprintf("%s[%d]", g.operand(depth), g.IntN(7)-3)
	case 3:
		return g.operand(depth) + g.pick("[1:]", "[:2]", "[::-1]", "[-2:]", "[::2]", "[2:0:-1]", "[:-1:1]", "[::0]")
	case 4:
		return x() + g.pick("[*]", "[]", "[*].a", "[].b", "[*].[a, b]", "[][]", "[*][*]", "[][0]")
	case 5:
		return fmt.Sprintf("%s[?%s]%s", x(), x(), g.pick("", ".a", "[]", ".[@, b]"))
	case 6:
		if g.narrow {
			return x() + g.pick(".*", ".*.a", ".*.type(@)", ".*.[a]", ".*.not_null(@, 'n')")
		}
		return x() + "." + x2function(g)
	case 7:
		return "(" + x() + g.pick(" || ", " && ") + x() + ")"
	case 8:
		return g.pick("!", "") + "(" + x() + ")"
	case 9:
		return "(" + x() + g.pick(" == ", " != ", " < ", " <= ", " > ", " >= ") + x() + ")"
	case 10:
		return "(" + x() + " | " + x() + ")"
	case 11:
		return "[" + x() + ", " + x() + "]"
	case 12:
		if g.narrow {
			return "{a: " + x() + "}"
		}
		return "{a: " + x() + ", b: " + x() + "}"
	}
	return g.call(depth - 1)
}

// operand is an expression before an index: one that a number does not follow otherwise.
func (g *generator) operand(depth int) string { return "(" + g.expression(depth-1) + ")" }

func x2function(g *generator) string {
	return g.pick("length(@)", "type(@)", "to_array(a)", "not_null(b, 'x')", "to_string(@)")
}

func (g *generator) call(depth int) string {
	x := func() string { return g.expression(depth) }
	switch g.IntN(10) {
	case 0, 1, 2:
		names := []string{"abs", "avg", "ceil", "floor", "length", "max", "min", "reverse", "sort", "sum", "to_array", "to_number", "to_string", "type"}
		if g.narrow {
			names = append(names, "keys", "values", "keys", "values")
		}
		return g.pick(names...) + "(" + x() + ")"
	case 3, 4:
		return g.pick("contains", "ends_with", "starts_with", "join") + "(" + x() + ", " + x() + ")"
	case 5:
		return "not_null(" + x() + ", " + x() + ")"
	case 6:
		return "merge(" + x() + ")"
	case 7:
		return "map(&" + x() + ", " + x() + ")"
	}
	// The copy keeps the library from sorting the data itself.
	return g.pick("sort_by", "max_by", "min_by") + "(" + x() + "[*], &" + x() + ")"
}

func TestAgreesWithTheLibrary(t *testing.T) {
	const rounds = 40000
	values := 0
	for i := range rounds {
		g := &generator{Rand: rand.New(rand.NewPCG(1, uint64(i))), narrow: i%4 == 0}
		data := g.data(4)
		expression := g.expression(1 + g.IntN(4))
		if !g.narrow && strings.Contains(expression, "*.") {
			continue
		}
		if agree(t, expression, data) {
			values++
		}
	}
	if values < rounds/4 {
		t.Errorf("only %d of %d expressions mean a value: the generator shows little", values, rounds)
	}
}

// showsOrder says whether the library's result may depend on the order of a Go map, or
// on its sorting of the data in place.
func showsOrder(tree upstream.ASTNode) bool {
	if tree.NodeType == upstream.ASTValueProjection {
		return true
	}
	if tree.NodeType == upstream.ASTFunctionExpression {
		switch tree.Value {
		case "keys", "values", "sort_by":
			return true
		}
	}
	return slices.ContainsFunc(tree.Children, showsOrder)
}

func FuzzSearch(f *testing.F) {
	for i := range 40 {
		g := &generator{Rand: rand.New(rand.NewPCG(2, uint64(i)))}
		f.Add(g.expression(3), `{"a": [1, {"b": "x"}], "b": {"a": 2.5}, "c": null}`)
	}
	for _, text := range []string{
		"[1::9223372036854775807]", "f([1, a)", "a[", "'a\\'b'", "!!!a", "`[[1]]`", "contains(a, @)", "&a", "[&a] | map([0], @)", "('abs')(`-1`)",
	} {
		f.Add(text, `[1, 2]`)
	}
	f.Fuzz(func(t *testing.T, text, document string) {
		var data any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(document), &data); err != nil || deeper(data, 100) {
			return
		}
		tree, err := parse(text)
		if err != nil {
			return
		}
		e, err := NewCompiler().Compile(text)
		if err != nil {
			return
		}
		e.Roots()
		if showsOrder(tree) || bigNumbers(data) {
			_, _ = e.Search(t.Context(), plenty(), data)
			return
		}
		agree(t, text, data)
	})
}

// bigNumbers says whether a number is not the same as a float64.
func bigNumbers(value any) bool {
	switch v := value.(type) {
	case int64:
		return v > 1<<53 || v < -1<<53
	case []any:
		return slices.ContainsFunc(v, bigNumbers)
	case map[string]any:
		for _, item := range v {
			if bigNumbers(item) {
				return true
			}
		}
	}
	return false
}
