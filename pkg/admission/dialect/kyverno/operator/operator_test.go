// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/operator"
)

func newRun() *jmespath.Run { return &jmespath.Run{Steps: 1_000_000, Bytes: 1 << 20} }

func decode(t testing.TB, document string) any {
	t.Helper()
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(document), &value); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return value
}

// holds parses and asks an operator that exists.
func holds(t testing.TB, name, key, value string) (bool, error) {
	t.Helper()
	o, err := operator.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return o.Holds(t.Context(), newRun(), decode(t, key), decode(t, value))
}

// TestHolds holds what was found by comparing with the handlers of Kyverno 1.19.
func TestHolds(t *testing.T) {
	for _, test := range []struct {
		operator, key, value string
		want                 bool
	}{
		// Equality.
		{"Equals", `true`, `true`, true},
		{"Equals", `true`, `"true"`, false},
		{"Equals", `"true"`, `true`, false},
		{"NotEquals", `"true"`, `true`, true},
		{"Equals", `5`, `5.0`, true},
		{"Equals", `5`, `"5.0"`, true},
		{"Equals", `5`, `"05"`, true},
		{"Equals", `5.5`, `5`, false},
		{"Equals", `"5"`, `5`, false},
		{"NotEquals", `"5"`, `5`, true},
		{"Equals", `9007199254740993`, `9007199254740992`, false},
		{"Equals", `"1h"`, `"60m"`, true},
		{"Equals", `"1h"`, `3600`, true},
		{"Equals", `3600`, `"1h"`, false},
		{"Equals", `"0"`, `"0s"`, false},
		{"Equals", `"0"`, `"0.0"`, true},
		{"Equals", `"1Gi"`, `"1024Mi"`, true},
		{"Equals", `"1E"`, `"1000P"`, true},
		{"Equals", `"1Ei"`, `"1024Pi"`, true},
		{"Equals", `"1Gi"`, `"1*"`, false},
		{"Equals", `"web-1"`, `"web-*"`, true},
		{"Equals", `"web-*"`, `"web-1"`, false},
		{"Equals", `"été"`, `"ét?"`, true},
		{"Equals", `null`, `null`, false},
		{"NotEquals", `null`, `"a"`, false},
		{"NotEquals", `"a"`, `null`, true},
		{"Equals", `[1, "a*"]`, `[1.0, "a*"]`, true},
		{"Equals", `["ab"]`, `["a*"]`, false},
		{"Equals", `{"a": [null]}`, `{"a": [null]}`, true},
		{"Equals", `{"a": 1}`, `{"a": 1, "b": 2}`, false},
		{"NotEquals", `{"a": 1}`, `{"b": 1}`, true},
		{"NotEquals", `"5"`, `""`, true},
		{"Equal", `"a"`, `"a"`, true},
		{"NotEqual", `"a"`, `"a"`, false},
		// The newer members.
		{"AnyIn", `"a"`, `["b", "a*"]`, true},
		{"AnyIn", `"a*"`, `["ab"]`, true},
		{"AnyIn", `"a*"`, `"ab"`, false},
		{"AnyIn", `["a*"]`, `"ab"`, true},
		{"AnyIn", `"a"`, `"[\"a\", \"b\"]"`, true},
		{"AnyIn", `"a"`, `"[\"a\", 1]"`, false},
		{"AnyNotIn", `"a"`, `"[\"b\", 1]"`, false},
		{"AnyIn", `"a"`, `5`, false},
		{"AnyNotIn", `"a"`, `5`, false},
		{"AnyNotIn", `["a"]`, `5`, true},
		{"AllNotIn", `["a"]`, `5`, false},
		{"AnyIn", `5`, `"1-10"`, true},
		{"AnyIn", `"5Mi"`, `"1Mi-1Gi"`, true},
		{"AnyIn", `"2h"`, `"1h-3h"`, true},
		{"AnyIn", `-9`, `"-10--8"`, true},
		{"AnyIn", `"a"`, `"1-10"`, false},
		{"AnyIn", `"test-value"`, `"test-value"`, true},
		{"AnyNotIn", `[1, 20]`, `"5-10"`, true},
		{"AnyNotIn", `["a"]`, `"5-10"`, false},
		{"AllNotIn", `["a"]`, `"5-10"`, true},
		{"AllIn", `[6, 7]`, `"5-10"`, true},
		{"AllIn", `[6, 17]`, `"5-10"`, false},
		{"AllIn", `[]`, `["a"]`, true},
		{"AnyIn", `[]`, `["a"]`, false},
		{"AllNotIn", `[]`, `["a"]`, true},
		{"AnyNotIn", `[]`, `["a"]`, false},
		{"AllIn", `["a", "b"]`, `["?"]`, true},
		{"AllNotIn", `["a", "b"]`, `["c", "b*"]`, false},
		{"AnyIn", `[5]`, `5`, true},
		{"AllIn", `[5]`, `5`, false},
		{"AnyIn", `1000000`, `["1e+06"]`, true},
		{"AnyIn", `1000000`, `["1000000"]`, false},
		{"AnyIn", `1000000`, `[1000000]`, true},
		{"AnyIn", `true`, `["true"]`, true},
		{"AnyIn", `[null]`, `["<nil>"]`, true},
		{"AnyIn", `[{"b": 1, "a": [2]}]`, `["map[a:[2] b:1]"]`, true},
		{"AnyIn", `{"a": 1}`, `["*"]`, false},
		{"AllNotIn", `{"a": 1}`, `["b"]`, false},
		{"AnyIn", `null`, `["*"]`, false},
		// The older members.
		{"In", `"a"`, `["a*"]`, true},
		{"In", `"a"`, `"b"`, false},
		{"NotIn", `"a"`, `"b"`, false},
		{"NotIn", `"a"`, `"[\"b\"]"`, true},
		{"In", `["a"]`, `["a*"]`, false},
		{"In", `["a", "b"]`, `["b", "a", "c"]`, true},
		{"NotIn", `["a", "z"]`, `["b", "a"]`, true},
		{"NotIn", `["a"]`, `"a"`, true},
		{"In", `["a"]`, `[1]`, false},
		{"NotIn", `["a"]`, `[1]`, false},
		{"In", `5`, `"1-10"`, false},
		// Order.
		{"GreaterThan", `5`, `3`, true},
		{"GreaterThan", `5`, `"3.5"`, true},
		{"GreaterThan", `"5"`, `3`, true},
		{"GreaterThan", `5`, `"4s"`, true},
		{"LessThan", `"10m"`, `"1h"`, true},
		{"LessThan", `"1h"`, `7200`, true},
		{"GreaterThanOrEquals", `"500m"`, `"0.5"`, true},
		{"GreaterThanOrEquals", `"500m"`, `"0.6"`, false},
		{"GreaterThan", `"1Gi"`, `"1G"`, true},
		{"LessThan", `"1.2.3"`, `"1.10.0"`, true},
		{"LessThan", `"v1.2.3"`, `"1.10.0"`, false},
		{"LessThanOrEquals", `"1.2.3-rc1"`, `"1.2.3"`, true},
		{"GreaterThan", `"abc"`, `1`, false},
		{"LessThan", `"abc"`, `1`, false},
		{"LessThan", `true`, `2`, false},
		{"LessThan", `null`, `2`, false},
		{"LessThan", `1`, `null`, false},
		{"GreaterThan", `"1e5000"`, `"1e4999"`, false}, // neither a quantity nor a number
		{"DurationGreaterThan", `"2h"`, `"90m"`, true},
		{"DurationGreaterThan", `"2h"`, `3600`, true},
		{"DurationLessThan", `1.9`, `"1500ms"`, true},
		{"DurationLessThanOrEquals", `60`, `60.5`, true},
		{"DurationGreaterThanOrEquals", `"60"`, `60`, false},
		{"DurationLessThan", `1e300`, `"1h"`, false}, // no wrapping around
	} {
		if got, err := holds(t, test.operator, test.key, test.value); err != nil || got != test.want {
			t.Errorf("%s %s %s: got %v, error %v", test.key, test.operator, test.value, got, err)
		}
	}
}

func TestOperandsAreToldByTheirRanges(t *testing.T) {
	for _, test := range []struct {
		key, value string
		want       bool
	}{
		{"0", "0-2", true},
		{"2", "0-2", true},
		{"3", "0-2", false},
		{"1.5", "1.25-1.75", true},
		{"5", "+1-+9", true},
		{"5", "-5-5", true},
		{"5-7", "5-7", true},
		{"5", "1-10-20", false},
		{"10", "|5-10", true},
		{"", "|5-10", true},
		{"9", "5-|10", false},
		{"10", "5-|10", true},
		{"5", "1.-9", false},
		{"5Ki", "1Ki-2-9Ki", false},
	} {
		got, err := holds(t, "AnyIn", fmt.Sprintf("[%q, \"no number\"]", test.key), fmt.Sprintf("%q", test.value))
		if err != nil || got != test.want {
			t.Errorf("%q in %q: got %v, error %v", test.key, test.value, got, err)
		}
	}
}

func TestParse(t *testing.T) {
	names := operator.Names()
	if len(names) != 18 {
		t.Errorf("%d operators", len(names))
	}
	for _, name := range names {
		if o, err := operator.Parse(name); err != nil || o.String() != name {
			t.Errorf("%s: got %v, error %v", name, o, err)
		}
	}
	for _, name := range []string{"", "equals", "Unknown", "unknown operator", "Between"} {
		if o, err := operator.Parse(name); err == nil || o != operator.Unknown || !strings.Contains(err.Error(), "use one of Equals, ") {
			t.Errorf("%q: got %v, error %v", name, o, err)
		}
	}
}

func TestHoldsFails(t *testing.T) {
	deep := any("bottom")
	for range 2000 {
		deep = []any{deep}
	}
	for name, test := range map[string]struct {
		operator   operator.Operator
		key, value any
		run        *jmespath.Run
		want       string
	}{
		"the zero operator":        {operator.Unknown, "a", "a", newRun(), "operator 0 does not exist"},
		"In and a list of numbers": {operator.In, []any{"a", int64(5)}, []any{"a"}, newRun(), "element 1 of the key is none: use AnyIn"},
		"what is no JSON":          {operator.AnyIn, []any{struct{}{}}, []any{"a"}, newRun(), "no decoded JSON"},
		"texts of deep values":     {operator.AnyIn, []any{deep}, []any{"a"}, newRun(), "too deep"},
		"equality of deep values":  {operator.Equals, []any{deep}, []any{deep}, newRun(), "too deep"},
		"nothing to spend":         {operator.Equals, "a", "a", &jmespath.Run{}, "is spent"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.operator.Holds(t.Context(), test.run, test.key, test.value)
			if got || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, error %v; want %q", got, err, test.want)
			}
		})
	}
}

// TestWorkIsPaidFor: what users write cannot take longer than the budget allows.
func TestWorkIsPaidFor(t *testing.T) {
	many := make([]any, 20_000)
	for i := range many {
		many[i] = "a-text-" + fmt.Sprint(i)
	}
	start := time.Now()
	for name, operands := range map[string][2]any{
		"long lists":      {many, many},
		"a long pattern":  {strings.Repeat("a", 1<<20), strings.Repeat("a?", 1<<18) + "*" + strings.Repeat("a?", 1<<18) + "b*"},
		"nested equality": {map[string]any{"a": many, "b": many}, map[string]any{"a": many, "b": many}},
	} {
		for _, o := range []operator.Operator{operator.AllNotIn, operator.Equals} {
			run := &jmespath.Run{Steps: 30_000}
			if _, err := o.Holds(t.Context(), run, operands[0], operands[1]); err != nil && !errors.Is(err, jmespath.ErrBudget) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, pair := range [][2]string{
		{"1e1000000000", "123456789012345678901234567890"},
		{"1e-1000000000", "1"},
		{"1234567890123456789012E999999999", "1Gi"},
		{strings.Repeat("9", 1<<20), strings.Repeat("9", 1<<20) + "k"},
	} {
		for _, o := range []operator.Operator{operator.GreaterThan, operator.Equals, operator.AnyIn} {
			if _, err := o.Holds(t.Context(), newRun(), pair[0], pair[1]); err != nil {
				t.Error(err)
			}
		}
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}
