// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/bound"
)

// TestTally: pieces measure what the map measures that they make.
func TestTally(t *testing.T) {
	long, list := strings.Repeat("x", 300), []any{"a", strings.Repeat("b", 40), "c"}
	for name, test := range map[string]struct {
		tally func(t *bound.Tally)
		whole any
	}{
		"nothing":    {func(t *bound.Tally) { t.Map(0) }, map[string]any{}},
		"a text":     {func(t *bound.Tally) { t.Map(1); t.Text("key", long) }, map[string]any{"key": long}},
		"a long key": {func(t *bound.Tally) { t.Map(1); t.Text(long, "a") }, map[string]any{long: "a"}},
		"texts":      {func(t *bound.Tally) { t.Map(1); t.Texts("key", []string{"a", strings.Repeat("b", 40), "c"}) }, map[string]any{"key": list}},
		"no texts":   {func(t *bound.Tally) { t.Map(1); t.Texts("key", nil) }, map[string]any{"key": []any{}}},
		"a map within": {
			func(t *bound.Tally) {
				t.Map(2)
				t.Key("a")
				t.Map(3)
				for _, key := range []string{"b", "c", "d"} {
					t.Text(key, long)
				}
				t.Field("e", map[string]any{"f": []any{int64(1), true, nil, long + long}})
			},
			map[string]any{"a": map[string]any{"b": long, "c": long, "d": long}, "e": map[string]any{"f": []any{int64(1), true, nil, long + long}}},
		},
		"no data": {func(t *bound.Tally) { t.Map(2); t.Field("a", func() {}); t.Text("b", "c") }, map[string]any{"a": func() {}, "b": "c"}},
	} {
		var tally bound.Tally
		test.tally(&tally)
		if got, want := tally.Sizes(), bound.Measure(test.whole); got != want {
			t.Errorf("%s measures %v, want %v", name, got, want)
		}
	}
	if got := new(bound.Tally).Sizes(); got != bound.Measure() {
		t.Errorf("the zero value measures %v, want %v", got, bound.Measure())
	}
}
