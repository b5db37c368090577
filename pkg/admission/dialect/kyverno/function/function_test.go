// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/function"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

func TestAllAreSorted(t *testing.T) {
	names := make([]string, 0, 51)
	for _, f := range function.All() {
		names = append(names, f.Name)
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != 51 {
		t.Errorf("want 51 different names in order: %q", names)
	}
}

// newRun returns a run that may spend what a request may.
func newRun() *jmespath.Run {
	return &jmespath.Run{
		Now: time.Date(2024, 2, 29, 23, 59, 59, 5e8, time.FixedZone("", -5*3600)), Seed: "uid", Steps: 1 << 20, Bytes: 1 << 20,
	}
}

// evaluate searches args with an expression.
func evaluate(t *testing.T, run *jmespath.Run, text string, args ...any) (any, error) {
	t.Helper()
	expression, err := jmespath.NewCompiler(function.All()...).Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return expression.Search(t.Context(), run, args)
}

func TestExpressions(t *testing.T) {
	for _, test := range []struct {
		text string
		args []any
		want any
	}{
		// Integers keep their digits.
		{"add(@[0], @[1])", []any{int64(9007199254740993), int64(2)}, int64(9007199254740995)},
		{"add(@[0], @[1])", []any{int64(9223372036854775807), int64(1)}, 9223372036854775808.0},
		{"add(@[0], @[1])", []any{int64(-9223372036854775808), int64(-1)}, -9223372036854775808.0},
		{"subtract(@[0], @[1])", []any{int64(9007199254740993), int64(2)}, int64(9007199254740991)},
		{"subtract(@[0], @[1])", []any{int64(-9223372036854775808), int64(1)}, -9223372036854775808.0},
		{"multiply(@[0], @[1])", []any{int64(3037000499), int64(3037000499)}, int64(9223372030926249001)},
		{"multiply(@[0], @[1])", []any{int64(-4611686018427387904), int64(2)}, int64(-9223372036854775808)},
		{"multiply(@[0], @[1])", []any{int64(-1), int64(-9223372036854775808)}, 9223372036854775808.0},
		{"multiply(@[0], @[1])", []any{int64(-9223372036854775808), int64(-1)}, 9223372036854775808.0},
		{"multiply(@[0], @[1])", []any{int64(4611686018427387904), int64(2)}, 9223372036854775808.0},
		{"divide(@[0], @[1])", []any{int64(9223372036854775807), int64(7)}, int64(1317624576693539401)},
		{"divide(@[0], @[1])", []any{int64(-9223372036854775808), int64(-1)}, 9223372036854775808.0},
		{"divide(@[0], @[1])", []any{int64(7), int64(2)}, 3.5},
		{"modulo(@[0], @[1])", []any{int64(9223372036854775807), int64(10)}, int64(7)},
		{"modulo(@[0], @[1])", []any{-7.0, int64(3)}, int64(-1)},
		{"modulo(@[0], @[1])", []any{int64(-9223372036854775808), int64(-1)}, int64(0)},
		{"modulo(@[0], @[1])", []any{"9223372036854775807", "10"}, "7"},
		{"modulo(@[0], @[1])", []any{"3", "15.25Ki"}, "3"},
		{"round(@[0], @[1])", []any{int64(9007199254740993), int64(400)}, int64(9007199254740993)},
		{"sum(@)", []any{int64(9007199254740993), int64(2), int64(2)}, int64(9007199254740997)},
		{"multiply(@[0], @[1])", []any{"1", int64(9007199254740993)}, "9007199254740993"},
		{"compare(@[0], @[1])", []any{"a", "b"}, int64(-1)},
		{"parse_json(@[0])", []any{"[9007199254740993, 1.5, 1e2]"}, []any{int64(9007199254740993), 1.5, 100.0}},
		{"parse_yaml(@[0])", []any{"9007199254740993"}, int64(9007199254740993)},
		{"regex_match('^1234567890$', @[0])", []any{int64(1234567890)}, true},
		{"regex_replace_all('0', @[0], @[1])", []any{1234567890.0, 0.1}, "1234567890.1"},
		{"object_from_lists(@[0], @[1])", []any{[]any{int64(1234567890), 0.1}, []any{"x"}}, map[string]any{"1234567890": "x", "0.1": nil}},
		{"truncate(@[0], @[1])", []any{"abc", 1e300}, "abc"},
		{"truncate(@[0], @[1])", []any{"日本語", int64(2)}, "日本"},
		{"replace(@[0], 'a', 'b', @[1])", []any{"aaa", 1e300}, "bbb"},

		// Both kinds of numbers are the same number.
		{"label_match(@[0], @[1])", []any{map[string]any{"a": []any{int64(1), 2.0}}, map[string]any{"a": []any{1.0, int64(2)}, "b": nil}}, true},
		{"label_match(@[0], @[1])", []any{map[string]any{"a": int64(9007199254740993)}, map[string]any{"a": int64(9007199254740992)}}, false},
		{"label_match(@[0], @[1])", []any{map[string]any{"a": nil}, map[string]any{}}, false},
		{"label_match(@[0], @[1])", []any{map[string]any{"a": map[string]any{"x": true}}, map[string]any{"a": map[string]any{"x": "true"}}}, false},
		{"lookup(@[0], @[1])", []any{[]any{"x", "y"}, 1.0}, "y"},
		{"lookup(@[0], @[1])", []any{[]any{"x", "y"}, int64(2)}, nil},
		{"items(@[0], 'i', 'v')", []any{[]any{"x"}}, []any{map[string]any{"i": int64(0), "v": "x"}}},
		{"sort_by(items(@[0], 'k', 'v'), &v)[*].k", []any{map[string]any{"b": "1", "a": "2"}}, []any{"b", "a"}},

		// The clock is that of the request.
		{"time_now()", nil, "2024-03-01T04:59:59Z"},
		{"time_now_utc()", nil, "2024-03-01T04:59:59Z"},
		{"time_since('', '2024-03-01T04:00:00Z', '')", nil, "59m59.5s"},

		{"is_external_url('http://[fe80::1%25eth0]/')", nil, true},
		{"parse_yaml(@[0])", []any{"a: &x {b: [1]}\nc: *x\nd: {<<: *x, e: 2}"}, map[string]any{
			"a": map[string]any{"b": []any{int64(1)}},
			"c": map[string]any{"b": []any{int64(1)}},
			"d": map[string]any{"b": []any{int64(1)}, "e": int64(2)},
		}},
	} {
		t.Run(test.text, func(t *testing.T) {
			got, err := evaluate(t, newRun(), test.text, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		text string
		args []any
		want string
	}{
		{"add(@[0], `1`)", []any{"a"}, `operand 1, "a", is neither a quantity nor a duration`},
		{"add(`1`, @[0])", []any{nil}, "operand 2 is null"},
		{"add('1e2147483647', '1')", nil, "operand 1"},
		{"add('0e99999', '1')", nil, "operand 1"},
		{"add('1e99999999999999999999', '1')", nil, "operand 1"},
		{"add(@[0], '1')", []any{strings.Repeat("1", 600)}, "longer than 512"},
		{"add('2000000h', '2000000h')", nil, "too long for a duration"},
		{"multiply('2400h', `1e20`)", nil, "too long for a duration"},
		{"multiply(`1e300`, `1e300`)", nil, "too large"},
		{"divide('1Gi', `0`)", nil, "the divisor is zero"},
		{"divide('1s', '0s')", nil, "the divisor is zero"},
		{"round(`1.5`, `400`)", nil, "too large"},
		{"sum(@)", []any{}, "the list is empty"},
		{"semver_compare('1.0.0', '1.2.3 || || 1.2.3')", nil, "an alternative that is empty"},
		{"semver_compare(@[0], '1.2.3')", []any{strings.Repeat("1", 2000)}, "longer than"},
		{"is_external_url('http://example.com')", nil, "names are not looked up"},
		{"is_external_url('')", nil, "not an IP address"},
		{"image_normalize('UPPER/Case')", nil, "not an image reference"},
		{"parse_yaml('a: &x [*x]')", nil, "YAML"},
		{"parse_json('{')", nil, "the text is not JSON"},
		{"random('')", nil, "the pattern is empty"},
		{"random('[')", nil, "not a regular expression"},
		{"random('((((a{9}){9}){9}){9}){9}')", nil, "not a regular expression"},
		{"random(@[0])", []any{strings.Repeat("a{1000}", 20)}, "more than 16384 characters"},
		{"random('((((()*)*)*)*)*')", nil, "more than 16384 characters"},
		{"regex_match(@[0], 'a')", []any{strings.Repeat("a", 9000)}, "too large"},
		{"regex_match('((a{10}){10}){10}((b{10}){10}){10}(c{1000}){1}x{1000}y{1000}z{1000}a{1000}b{1000}c{1000}d{1000}', 'a')", nil, "too large"},
		{"time_parse('Jan 2006', @[0])", []any{strings.Repeat("1", 2000)}, "longer than"},
		{"time_add('2024-01-01T00:00:00Z', '1d')", nil, `"1d" is not a duration`},
		{"x509_decode('x')", nil, "no PEM block"},
		{"to_boolean(@[0])", []any{strings.Repeat("x", 10000)}, "neither true nor false"},
	} {
		t.Run(test.text, func(t *testing.T) {
			got, err := evaluate(t, newRun(), test.text, test.args...)
			if err == nil {
				t.Fatalf("no error, but %v", got)
			}
			if !strings.Contains(err.Error(), test.want) || len(err.Error()) > 600 {
				t.Errorf("want %q in %q", test.want, err)
			}
		})
	}
}

// What becomes large, or takes long, is refused before it is made.
func TestBudget(t *testing.T) {
	long := strings.Repeat("a", 1<<16)
	for _, test := range []struct {
		text string
		args []any
	}{
		{"replace_all(@[0], 'a', @[0])", []any{long}},
		{"replace_all(@[0], '', @[0])", []any{long}},
		{"regex_replace_all_literal('a', @[0], @[0])", []any{long}},
		{"regex_replace_all('.*', @[0], @[1])", []any{long, strings.Repeat("$0", 1<<10)}},
		{"regex_match('(x+x+)+y', @[0])", []any{strings.Repeat("x", 1<<21)}},
		{"split(@[0], '')", []any{long}},
		{"trim(@[0], @[1])", []any{strings.Repeat("é", 1<<15), strings.Repeat("è", 1<<15)}},
		{"items(@[0], 'a', 'b')", []any{make([]any, 1<<16)}},
		{"object_from_lists(@[0], @[0])", []any{make([]any, 1<<16)}},
		{"label_match(@[0], @[0])", []any{map[string]any{"a": make([]any, 1<<21)}}},
		{"parse_json(@[0])", []any{"[" + strings.Repeat("[],", 1<<15) + "1]"}},
		{"parse_yaml(@[0])", []any{strings.Repeat("- a\n", 1<<15)}},
		{"parse_yaml(@[0])", []any{"a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]"}},
		{"parse_yaml(@[0])", []any{"- &a " + long + "\n" + strings.Repeat("- *a\n", 100)}},
		{"x509_decode(@[0])", []any{strings.Repeat("-----BEGIN X-----\n", 3000)}},
		{"add(to_upper(@[0]), `1`)", []any{strings.Repeat("a", 1<<20+1)}},
		{"pattern_match(@[0], @[1])", []any{strings.Repeat("*?a?b", 1000), strings.Repeat("c", 1<<18)}},
		{"sum(@)", slices.Repeat([]any{int64(1)}, 1<<18)},
	} {
		t.Run(test.text, func(t *testing.T) {
			run := newRun()
			if strings.HasPrefix(test.text, "x509") {
				run.Bytes = 1 << 18
			}
			got, err := evaluate(t, run, test.text, test.args...)
			if !errors.Is(err, jmespath.ErrBudget) {
				t.Errorf("want the budget to be spent, got %.100v, error %v, %d steps and %d bytes left", got, err, run.Steps, run.Bytes)
			}
		})
	}
}
