// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// repeated is a value of many items.
func repeated(n int, item any) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = item
	}
	return list
}

func TestSelfDoublingExpressionsFail(t *testing.T) {
	tests := map[string]struct {
		expression string
		data       any
	}{
		"lists in lists":      {strings.Repeat("[@,@]|", 40) + "@", "x"},
		"objects in objects":  {strings.Repeat("{a:@,b:@}|", 40) + "@", "x"},
		"long texts in lists": {strings.Repeat("[@,@]|", 16) + "@", strings.Repeat("x", 4096)},
		"texts":               {strings.Repeat("join('',[@,@])|", 40) + "@", "x"},
		"flattening":          {"[@,@]" + strings.Repeat("[][@,@]", 40), "x"},
		"flattening in pipes": {strings.Repeat("[@,@][]|", 40) + "@", []any{"x"}},
		"mapping":             {strings.Repeat("map(&[@,@], @)[]|", 40) + "@", []any{"x"}},
		"texts of lists":      {strings.Repeat("to_string([@,@])|", 40) + "@", "x"},
		"merging":             {strings.Repeat("merge({a:@},{b:@})|", 40) + "@", "x"},
		"sorting":             {strings.Repeat("[@,@][]|sort(@)|", 40) + "@", []any{"x"}},
		"nested projections":  {"[*][*]" + strings.Repeat("[]", 20), nestedLists(24)},
		"a filter of filters": {"@[?contains(map(&to_string(@), @), 'y')]", repeated(200, repeated(20000, 1.0))},
		"comparisons":         {strings.Repeat("(a == b) || ", 500) + "a", map[string]any{"a": repeated(10000, 1.0), "b": append(repeated(9999, 1.0), "y")}},
		"in a condition":      {"@[?(" + strings.Repeat("[@,@]|", 40) + "@)]", []any{"x"}},
		"left of a filter":    {"(" + strings.Repeat("[@,@]|", 40) + "@)[?@]", "x"},
		"left of values":      {"(" + strings.Repeat("{a:@,b:@}|", 40) + "@).*", "x"},
		"left of an or":       {"(" + strings.Repeat("[@,@]|", 40) + "@) || a", "x"},
		"deep lists":          {strings.Repeat("[@]|", 2000) + "@", "x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := NewCompiler().Compile(test.expression)
			if err != nil {
				t.Fatal(err)
			}
			run := &Run{Steps: 1 << 20, Bytes: 16 << 20}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			got, err := e.Search(t.Context(), run, test.data)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrBudget) {
				t.Fatalf("got %T and error %v, want ErrBudget", got, err)
			}
			if made := after.TotalAlloc - before.TotalAlloc; made > 64<<20 {
				t.Errorf("it took %d bytes", made)
			}
			// The steps bound the time, which depends on who else is at work.
			t.Logf("%v, %d KiB", took, (after.TotalAlloc-before.TotalAlloc)>>10)
		})
	}
}

// nestedLists is a list of two lists of two lists and so on, which share everything.
func nestedLists(depth int) any {
	var value any = "x"
	for range depth {
		value = []any{value, value}
	}
	return value
}

func TestBudgetIsSpent(t *testing.T) {
	tests := map[string]struct {
		expression   string
		data         any
		steps, bytes int
		spent        bool
	}{
		"no run at all":              {"`1`", nil, 0, 0, true},
		"a path costs its steps":     {"a.b.c", map[string]any{}, 4, 0, false},
		"a path costs all its steps": {"a.b.c", map[string]any{}, 3, 0, true},
		"a path makes nothing":       {"a.b", map[string]any{"a": map[string]any{"b": strings.Repeat("x", 1000)}}, 10, 0, false},
		"a list is made":             {"[a]", map[string]any{}, 10, 16, true},
		"a text is made":             {"join('', a)", map[string]any{"a": repeated(10, strings.Repeat("x", 100))}, 100, 999, true},
		"a text within the budget":   {"join('', a)", map[string]any{"a": repeated(10, strings.Repeat("x", 100))}, 100, 1100, false},
		"a projection is a list":     {"[*].a", repeated(100, map[string]any{"a": 1.0}), 1000, 1500, true},
		"an index makes nothing":     {"[2]", repeated(100, "x"), 3, 0, false},
		"a slice makes nothing":      {"([1:3])[0]", repeated(100, "x"), 20, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := NewCompiler().Compile(test.expression)
			if err != nil {
				t.Fatal(err)
			}
			run := &Run{Steps: test.steps, Bytes: test.bytes}
			_, err = e.Search(t.Context(), run, test.data)
			if errors.Is(err, ErrBudget) != test.spent {
				t.Fatalf("got error %v, want spent %t", err, test.spent)
			}
			if !test.spent {
				return
			}
			if _, err := e.Search(t.Context(), run, test.data); !errors.Is(err, ErrBudget) {
				t.Errorf("a spent budget can be spent again: %v", err)
			}
		})
	}
}

func TestSpend(t *testing.T) {
	run := &Run{Steps: 10, Bytes: 10}
	if err := run.Spend(t.Context(), 4, 5); err != nil || run.Steps != 6 || run.Bytes != 5 {
		t.Errorf("got error %v, %d steps, %d bytes", err, run.Steps, run.Bytes)
	}
	for name, cost := range map[string][2]int{"steps": {7, 0}, "bytes": {0, 6}, "overflowing": {0, -1}, "all": {7, 6}} {
		r := *run
		if err := r.Spend(t.Context(), cost[0], cost[1]); !errors.Is(err, ErrBudget) {
			t.Errorf("%s: got error %v, want ErrBudget", name, err)
		}
		if err := r.Spend(t.Context(), 1, 0); !errors.Is(err, ErrBudget) {
			t.Errorf("%s: got error %v afterwards, want ErrBudget", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run.Spend(ctx, 1, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that of the context", err)
	}
}

func TestContextEndsAnEvaluation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	compiler := NewCompiler(Function{Name: "end", Params: takes(Any), Call: func(context.Context, *Run, []any) (any, error) {
		cancel()
		return true, nil
	}})
	for _, expression := range []string{
		"end(@) && [*].to_string(@)",
		"(end(@) && [*].to_string(@))[]",
		"(end(@) && [*].to_string(@))[?@]",
		"(end(@) && [*].{a: to_string(@)})[?@] || 'x'",
	} {
		e, err := compiler.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		run := &Run{Steps: 1 << 30, Bytes: 1 << 30}
		if _, err := e.Search(ctx, run, repeated(10000, 1.0)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v, want that of the context", expression, err)
		}
		if spent := 1<<30 - run.Steps; spent > 1000 {
			t.Errorf("%s: it went on for %d steps", expression, spent)
		}
	}
}

func TestTextsAreBounded(t *testing.T) {
	tests := map[string]string{
		"long":             strings.Repeat("a", maxText+1),
		"brackets":         strings.Repeat("(", 600) + "a" + strings.Repeat(")", 600),
		"lists":            strings.Repeat("[", 600) + "a" + strings.Repeat("]", 600),
		"negations":        strings.Repeat("!", 600) + "a",
		"references":       strings.Repeat("& ", 600) + "a",
		"projections":      "a" + strings.Repeat("[*]", 600),
		"filters":          "a" + strings.Repeat("[?a]", 600),
		"values":           "a" + strings.Repeat(".*", 600),
		"slices":           "a" + strings.Repeat("[:]", 600),
		"slices backwards": "a" + strings.Repeat("[1:-1]", 600),
		"slices to a":      "a" + strings.Repeat("[1:9]", 600),
		"flattenings":      "a" + strings.Repeat("[]", 600),
		"comparisons":      "a" + strings.Repeat("==a", 600),
		"a deep literal":   "`" + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "`",
		"unclosed":         strings.Repeat("(", 16000),
		"unclosed lists":   strings.Repeat("[", 16000),
		"unclosed objects": strings.Repeat("{a:", 5000),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewCompiler().Compile(text)
			if err == nil {
				t.Fatal("it compiles")
			}
			if len(err.Error()) > 200 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
		})
	}
}

func TestLongChainsAreNotDeep(t *testing.T) {
	data := map[string]any{"a": map[string]any{}}
	for _, link := range []string{".a", " || a", " && a", " | @", "[0]"} {
		text := "a" + strings.Repeat(link, (maxText-1)/len(link))
		e, err := NewCompiler().Compile(text)
		if err != nil {
			t.Fatalf("a%s...: %v", link, err)
		}
		if _, err := e.Search(t.Context(), plenty(), data); err != nil && !isMissing(err) {
			t.Errorf("a%s...: %v", link, err)
		}
		if roots := e.Roots(); len(roots) != 1 {
			t.Errorf("a%s...: roots are %v", link, roots)
		}
	}
}

func TestDeepValues(t *testing.T) {
	var deep any = "x"
	for range 2 * maxDepth {
		deep = []any{deep}
	}
	for _, expression := range []string{"@ == @", "to_string(@)", "[@]", "{a: @}"} {
		e, err := NewCompiler().Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Search(t.Context(), plenty(), deep); !errors.Is(err, ErrBudget) {
			t.Errorf("%s: got error %v, want ErrBudget", expression, err)
		}
	}
}

func TestSpendingDoesNotDependOnTheOrderOfAMap(t *testing.T) {
	data := map[string]any{}
	for i := range 50 {
		data[fmt.Sprintf("k%d", i)] = repeated(i, fmt.Sprint(i))
	}
	other := map[string]any{}
	for key, value := range data {
		other[key] = value
	}
	other["k20"] = "another"
	e, err := NewCompiler().Compile("[a == b, a.*, values(a)[], merge(a, b), to_string(a), map(&length(@), values(b))]")
	if err != nil {
		t.Fatal(err)
	}
	var first *Run
	for range 20 {
		run := &Run{Steps: 1 << 20, Bytes: 1 << 24}
		if _, err := e.Search(t.Context(), run, map[string]any{"a": data, "b": other}); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = run
		} else if first.Steps != run.Steps || first.Bytes != run.Bytes {
			t.Fatalf("%d steps and %d bytes are left, and %d and %d", first.Steps, first.Bytes, run.Steps, run.Bytes)
		}
	}
}
