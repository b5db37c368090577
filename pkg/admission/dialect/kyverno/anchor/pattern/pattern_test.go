// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern_test

import (
	"strings"
	"sync"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor/pattern"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func compile(t testing.TB, text string) *pattern.Pattern {
	t.Helper()
	return compileTree(t, decode(t, text))
}

func compileTree(t testing.TB, tree any) *pattern.Pattern {
	t.Helper()
	compiled, err := pattern.Compile(tree)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestMatchText(t *testing.T) {
	for _, test := range []struct {
		pattern, value string
		match, text    bool
	}{
		{`80`, `80`, true, true},
		{`80`, `"80"`, true, true},
		{`"80"`, `80`, true, true},
		{`"80*"`, `8080`, false, true},
		{`"8*"`, `80`, true, true},
		{`"8E+01"`, `80`, true, true},
		{`"e*"`, `1e21`, false, false},
		{`"1e+21"`, `1e21`, true, true},
		{`"1e-07"`, `0.0000001`, false, false},
		{`"1e-7"`, `0.0000001`, false, true},
		{`"0s"`, `0`, false, true},
		{`"0.0000001"`, `1e-7`, false, true},
		{`"*e-7"`, `0.0000001`, false, true},
		{`1.5`, `"1500m"`, false, true},
		{`true`, `"true"`, false, true},
		{`true`, `true`, true, true},
		{`"true"`, `true`, true, true},
		{`"t*"`, `true`, true, true},
		{`null`, `null`, true, true},
		{`null`, `0`, true, false},
		{`null`, `""`, true, false},
		{`null`, `false`, true, false},
		{`null`, `"null"`, false, true},
		{`"null"`, `null`, false, true},
		{`"*"`, `null`, false, true},
		{`"<5"`, `null`, true, false},
		{`"*"`, `{}`, false, false},
		{`80`, `[80, "80"]`, true, true},
		{`80`, `[80, 81]`, false, false},
		{`80`, `[]`, true, true},
		{`true`, `[true]`, true, true},
		{`true`, `["true"]`, false, true},
		{`{"port": "80*"}`, `{"port": 8080}`, false, false},
		{`["80"]`, `[80]`, true, true},
		{`["80"]`, `80`, false, false},
		{`{}`, `"{}"`, false, false},
	} {
		compiled, value := compile(t, test.pattern), decode(t, test.value)
		if got := compiled.Match(value); got != test.match {
			t.Errorf("%s on %s: Match says %v", test.pattern, test.value, got)
		}
		if got := compiled.MatchText(value); got != test.text {
			t.Errorf("%s on %s: MatchText says %v", test.pattern, test.value, got)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	objects := strings.Repeat(`{"a":`, 1001) + "1" + strings.Repeat("}", 1001)
	lists := strings.Repeat("[", 1001) + strings.Repeat("]", 1001)
	for name, value := range map[string]any{
		"objects":   decode(t, objects),
		"lists":     decode(t, lists),
		"existence": decode(t, `{"^(a)": `+objects+`}`),
		// Nothing is left unread.
		"behind a first element": decode(t, `["a", `+lists+`]`),
		"alternatives":           strings.Repeat("|", 10_000),
		"many alternatives":      []any{strings.Repeat("|", 6_000), strings.Repeat("&", 6_000)},
		"elements":               make([]any, 10_000),
		"no JSON":                struct{}{},
		"no JSON deep down":      map[string]any{"a": []any{"a", 5}},
	} {
		if _, err := pattern.Compile(value); err == nil {
			t.Errorf("%s: compiles", name)
		}
	}
}

func TestCompileTakesManyAlternatives(t *testing.T) {
	compiled := compileTree(t, strings.Repeat("a|", 9_000)+"b")
	if !compiled.MatchText("b") || compiled.MatchText("c") {
		t.Error("the last alternative does not decide")
	}
}

func TestDeepValues(t *testing.T) {
	deep := strings.Repeat(`[`, 5000) + strings.Repeat("]", 5000)
	for text, want := range map[string]bool{`[]`: false, `[[]]`: false, `"*"`: false, `{}`: false} {
		if got := compile(t, text).Match(decode(t, deep)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	pattern := strings.Repeat(`{"a":`, 900) + "1" + strings.Repeat("}", 900)
	if !compile(t, pattern).Match(decode(t, pattern)) {
		t.Error("900 objects do not match themselves")
	}
}

func TestNoAllocations(t *testing.T) {
	for _, test := range []struct{ pattern, value string }{
		{`"nginx*"`, `"nginx:latest"`},
		{`"!*:latest | a & b*"`, `"nginx:1.27"`},
		{`">= 1Gi"`, `"2Gi"`},
		{`"1h"`, `"60m"`},
		{`">5"`, `80`},
		{`"10-90"`, `80.5e1`},
		{`80`, `80`},
		{`"?E+*"`, `80`},
		{`true`, `true`},
		{`"t*"`, `true`},
		{`null`, `""`},
		{`"a*"`, `["a", "ab"]`},
		{`{"(a)": "b", "=(c)": {"d": [{"(e)": 1, "f": "*"}]}}`, `{"a": "b", "c": {"d": [{"e": 1, "f": {}}]}}`},
	} {
		compiled, value := compile(t, test.pattern), decode(t, test.value)
		if got := testing.AllocsPerRun(100, func() {
			compiled.Match(value)
			compiled.MatchText(value)
		}); got != 0 {
			t.Errorf("%s on %s: %v allocations", test.pattern, test.value, got)
		}
	}
}

// Comparing quantities writes into one of them.
func TestConcurrentUse(t *testing.T) {
	compiled := compile(t, `{"a": "<= 123456789012345678901234567890", "b": "1Gi", "c": "1-5 | *Ti & !x"}`)
	value := decode(t, `{"a": "123456789012345678901234567889", "b": "1024Mi", "c": "5Ti"}`)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			for range 100 {
				if !compiled.Match(value) {
					t.Error("does not match")
					return
				}
			}
		})
	}
	group.Wait()
}
