// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function_test

import (
	"regexp"
	"testing"
)

func TestRandomMatchesItsPattern(t *testing.T) {
	for _, pattern := range []string{
		"abc", "[a-z0-9]{5}", "^[0-9a-f]{8}-[0-9a-f]{4}$", "(foo|bar|b[au]z)+", "x*", "y+z?", ".{10}", "[^a-z]{20}",
		"[[:alpha:]]{3,6}", "a{0}", "a{2,}", "(a|)b", "[é-ü]{4}", "\n", "(a(b(c)?)*)+",
	} {
		compiled := regexp.MustCompile("^(?:" + pattern + ")$")
		for _, seed := range []string{"", "a", "b", "c", "d"} {
			run := newRun()
			run.Seed = seed
			got, err := evaluate(t, run, "random(@[0])", pattern)
			if err != nil {
				t.Errorf("%q: %v", pattern, err)
				continue
			}
			if text, ok := got.(string); !ok || !compiled.MatchString(text) {
				t.Errorf("%q does not match %q", got, pattern)
			}
		}
	}
}

func TestRandomDependsOnTheRequestAndThePattern(t *testing.T) {
	texts := map[any]bool{}
	for _, test := range []struct{ seed, pattern string }{
		{"a", "[a-z]{20}"}, {"b", "[a-z]{20}"}, {"a", "([a-z]{20})"}, {"", "a[a-z]{20}"}, {"a1", "[a-z]{20}"},
	} {
		var first any
		for range 2 {
			run := newRun()
			run.Seed = test.seed
			got, err := evaluate(t, run, "random(@[0])", test.pattern)
			if err != nil {
				t.Fatal(err)
			}
			if first != nil && got != first {
				t.Errorf("seed %q: %q and %q", test.seed, first, got)
			}
			first = got
		}
		if texts[first] {
			t.Errorf("seed %q, pattern %q: %q has been there before", test.seed, test.pattern, first)
		}
		texts[first] = true
	}
}

// All of a class must be possible, and nothing else.
func TestRandomIsEven(t *testing.T) {
	count := map[rune]int{}
	got, err := evaluate(t, newRun(), "random('[ace-g]{1000}')")
	if err != nil {
		t.Fatal(err)
	}
	for _, character := range got.(string) {
		count[character]++
	}
	for _, character := range "acefg" {
		if count[character] < 140 {
			t.Errorf("%q is there %d times in 1000", character, count[character])
		}
	}
}
