// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBounded(t *testing.T) {
	full := strings.Repeat("x", MaxBytes)
	for text, want := range map[string]string{
		"short":       "short",
		full:          full,
		full + "x":    full[4:] + " ...",
		"not \xff it": "not  it",
	} {
		if got := Bounded(text); got != want {
			t.Errorf("of %d bytes: got %d bytes, want %d", len(text), len(got), len(want))
		}
	}
	if got := Bounded(strings.Repeat("ü", MaxBytes)); len(got) > MaxBytes || !utf8.ValidString(got) {
		t.Errorf("got %d bytes, valid: %t", len(got), utf8.ValidString(got))
	}
}

func TestListed(t *testing.T) {
	long := strings.Repeat("ü", MaxBytes)
	for _, test := range []struct {
		name      string
		texts     []string
		want, end string // all of it, or its end
	}{
		{name: "none"},
		{name: "one", texts: []string{"a"}, want: "a"},
		{name: "some", texts: []string{"a", "b", "c"}, want: "a; b; c"},
		{name: "a long one", texts: []string{long}, end: "ü"},
		{name: "a long one and others", texts: []string{long, "b", "c"}, end: "ü; and 2 more"},
		{name: "a long one behind others", texts: []string{"a", "b", long, "c"}, want: "a; b; and 2 more"},
		{name: "many", texts: slices.Repeat([]string{strings.Repeat("x", 99)}, 1000), end: fmt.Sprintf("x; and %d more", 1000-80)},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Listed(test.texts)
			if len(got) > MaxBytes || !utf8.ValidString(got) {
				t.Errorf("got %d bytes, valid: %t", len(got), utf8.ValidString(got))
			}
			if test.end == "" && got != test.want || !strings.HasSuffix(got, test.end) {
				t.Errorf("got %q", got[max(0, len(got)-80):])
			}
		})
	}
}
