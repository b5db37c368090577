// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern_test

import (
	"strings"
	"testing"
	"time"
)

func TestScalars(t *testing.T) {
	for _, test := range []struct {
		pattern string
		matches string // a list
		fails   string // a list
	}{
		{`null`, `[null, 0, 0.0, -0.0, "", false]`, `[1, "0", "null", true, {}]`},
		{`true`, `[true]`, `[false, "true", 1, null, {}]`},
		{`5`, `[5, 5.0, "5", "5.0", "5e0", "+5"]`, `[4, "05x", "5m", true, null, {}, "", "five"]`},
		{`9007199254740993`, `[9007199254740993]`, `[9007199254740992, 9007199254740994]`},
		{`0.5`, `[0.5, ".5", "5e-1"]`, `[0, 1, "500m", null, {}]`},
		{`"nginx"`, `["nginx"]`, `["nginx2", "", null, 5, {}, "Nginx"]`},
		{`"nginx*"`, `["nginx", "nginx:latest"]`, `["my-nginx", null]`},
		{`"?"`, `["a", "é"]`, `["", "ab", 5]`},
		{`"*"`, `["", "a", 5, true]`, `[null, {}]`},
		{`""`, `[""]`, `["a", null, 0]`},

		{`"a | b"`, `["a", "b", "a | b"]`, `["c", "a ", "a|b"]`},
		{`"a|"`, `["a", "", "a|"]`, `["b"]`},
		{`"a* & *b"`, `["ab", "axb", "a* & *b"]`, `["a", "b"]`},
		{`"a* & *b | c"`, `["ab", "c"]`, `["a", "b", "ac"]`},
		{`">1 & <4 | >10"`, `[2, 3, 11, "3"]`, `[1, 4, 10, "five"]`},

		{`"!a*"`, `["b", 5, true]`, `["a", "ab", null, {}]`},
		{`"! a"`, `["b"]`, `["a"]`},
		{`"!"`, `["!"]`, `["", "a"]`},
		{`">"`, `[">"]`, `[5]`},
		{`"=a"`, `["=a"]`, `["a"]`},
		{`"!5"`, `[4, "4", "a"]`, `[5, "5", "5.0", "5000m"]`},

		{`">5"`, `[6, "6", 5.1, "5001m"]`, `[5, "5", "a", true, null]`},
		{`">= 5"`, `[5, "5", "5k"]`, `[4.9]`},
		{`"<5"`, `[4, "4", null, -7]`, `[5, "", false]`},
		{`"<=5"`, `[5, null]`, `[6]`},
		{`">5a"`, `[]`, `[6, "6", "5b", "5a"]`},

		{`"1Gi"`, `["1Gi", "1024Mi", 1073741824, "1073741824"]`, `["1G", "1Gib"]`},
		{`"0.2"`, `["200m", 0.2, "0.20"]`, `["2", "20m"]`},
		{`">=0.6"`, `["600m", 1]`, `["500m"]`},
		{`"1e3"`, `["1k", 1000, "1000"]`, `["1e3x"]`},
		{`"0.0000001"`, `["0.0000001"]`, `[0.0000001]`},

		{`"1h"`, `["60m", "3600s", "1h0m"]`, `["61m", 3600, "1", null]`},
		{`">1h"`, `["61m"]`, `["60m", 3601, "1d"]`},
		{`"<1h"`, `["59m", null]`, `[0, ""]`},
		// A quantity with a quantity, a duration with a duration.
		{`"15m"`, `["15m", "900s", "0.015", 0.015]`, `["0.25h1", 900]`},

		{`"0-2"`, `[0, 2, 1.5, "2", "2000m", null]`, `[-1, 3, "a"]`},
		{`"-10--8"`, `[-10, -9, "-8"]`, `[-11, -7, 9]`},
		{`"-10!--8"`, `[9, -11, -7]`, `[-10, -9, -8]`},
		{`"1Mi-1Gi"`, `["1Mi", "512Mi"]`, `["2Gi", "1Ki", 1]`},
		{`"1h-2h"`, `["60m", "2h", "90m"]`, `["3h", 1]`},
		{`"1-5 & !3"`, `[1, 2, 5]`, `[3, 6]`},
		{`"1!-5 & <10"`, `[0, 6]`, `[3, 10]`},
		{`"5 - 8"`, `["5 - 8"]`, `[6]`},
		{`"test-value"`, `["test-value"]`, `["test", 5]`},
		{`"1e-3"`, `["1e-3"]`, `[0.001, 2]`},
		{`"1-2-3"`, `["1-2-3"]`, `[2]`},
	} {
		compiled := compile(t, test.pattern)
		for _, value := range decode(t, test.matches).([]any) {
			if !compiled.Match(value) {
				t.Errorf("%s does not match %#v", test.pattern, value)
			}
		}
		for _, value := range decode(t, test.fails).([]any) {
			if compiled.Match(value) {
				t.Errorf("%s matches %#v", test.pattern, value)
			}
		}
	}
}

// To Kyverno a unit is the quantity zero, and so is a sign.
func TestUnitsAreNoQuantities(t *testing.T) {
	for _, test := range []struct {
		pattern, value string
		want           bool
	}{
		{`"m"`, `"k"`, false},
		{`"e1"`, `"e2"`, false},
		{`"!e1"`, `"e2"`, true},
		{`"0"`, `"m"`, false},
		{`"<5"`, `"-"`, false},
		{`"-"`, `"."`, false},
		{`"m"`, `"m"`, true},
		{`"-"`, `"-"`, true},
	} {
		if got := compile(t, test.pattern).Match(decode(t, test.value)); got != test.want {
			t.Errorf("%s on %s: %v", test.pattern, test.value, got)
		}
	}
}

func TestHostileTexts(t *testing.T) {
	start := time.Now()
	for _, test := range []struct{ pattern, value string }{
		{strings.Repeat("*a", 50_000) + "b", strings.Repeat("a", 1<<20)},
		{strings.Repeat("a|*b&", 2000), strings.Repeat("a", 1<<20)},
		{">1e999999999", "1e999999998"},
		{"<" + strings.Repeat("9", 1<<20), strings.Repeat("8", 1<<20)},
		{strings.Repeat("1-", 1<<19), "1"},
	} {
		if compile(t, `"`+test.pattern+`"`).Match(test.value) {
			t.Errorf("%.20s matches", test.pattern)
		}
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}
