// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"strings"
	"testing"
)

// TestShown: a value is shown as it is, or said to be too large, however much it is.
func TestShown(t *testing.T) {
	part := strings.Repeat("x", 1<<20)
	large := make([]any, 1000) // a GiB of JSON, and little memory
	for i := range large {
		large[i] = part
	}
	for want, value := range map[string]any{
		`{"a":[1,null,"x"]}`:                 map[string]any{"a": []any{int64(1), nil, "x"}},
		`"` + part[:maxShownBytes-2] + `"`:   part[:maxShownBytes-2],
		`"(more than 4096 bytes of JSON)"`:   part[:maxShownBytes-1],
		`"(more than 4096 bytes of JSON)" `:  large,
		`"(more than 4096 bytes of JSON)"  `: map[string]any{"a": large},
	} {
		if got := string(shown(value)); got != strings.TrimSpace(want) {
			t.Errorf("got %.100s, want %.100s", got, want)
		}
	}
}
