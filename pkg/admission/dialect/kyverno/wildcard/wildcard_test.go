// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package wildcard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/wildcard"
)

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"a", "", false},
		{"*", "", true},
		{"**", "", true},
		{"*", "anything", true},
		{"?", "", false},
		{"?", "a", true},
		{"?", "ab", false},
		{"?", "é", true},
		{"??", "é", false},
		{"?", "\xff", true},
		{"\xff", "\xfe", true},
		{"\xff", "\uFFFD", true},
		{"é*", "école", true},
		{"e*", "école", false},
		{"nginx", "nginx", true},
		{"nginx", "Nginx", false},
		{"nginx", "nginx2", false},
		{"*:latest", "nginx:latest", true},
		{"*:latest", "nginx:latest:latest", true},
		{"*:latest", "nginx:latest2", false},
		{"docker.io/*", "docker.io/", true},
		{"a*b?c", "axxbyc", true},
		{"a*b?c", "axxbybzc", true},
		{"a*b?c", "abc", false},
		{"*?", "", false},
		{"*?*", "é", true},
		{"a?", "a", false},
		{"a*?b", "ab", false},
		{"*ab*ab", "abab", true},
		{"*ab*ab", "aba", false},
		{`\*`, "*", false},
		{`\*`, `\x`, true},
		{"[a]", "a", false},
	} {
		if got := wildcard.Match(test.pattern, test.text); got != test.want {
			t.Errorf("Match(%q, %q) = %v", test.pattern, test.text, got)
		}
	}
}

func TestContains(t *testing.T) {
	for text, want := range map[string]bool{"": false, "a": false, "a*": true, "?": true, "[a]": false} {
		if got := wildcard.Contains(text); got != want {
			t.Errorf("Contains(%q) = %v", text, got)
		}
	}
}

func TestMatchTakesNoLongerThanItSays(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	start := time.Now()
	for _, pattern := range []string{strings.Repeat("*a", 10_000) + "b", "*" + long + "b*", "*" + long + "b", long + "*b"} {
		if steps := wildcard.Steps(pattern, long); steps != len(pattern)+len(long) {
			t.Errorf("%d steps for a pattern of %d and a text of %d", steps, len(pattern), len(long))
		}
		if wildcard.Match(pattern, long) {
			t.Error("matches without its last character")
		}
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if steps, want := wildcard.Steps("a*b?c*?d", "text"), len("a*b?c*?d")+len("text")+3*len("text"); steps != want {
		t.Errorf("%d steps, want %d", steps, want)
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { wildcard.Match("*é?b*", "éxaébbc") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// reference is what the pattern means, in as few words as possible.
func reference(pattern, text []rune) bool {
	if len(pattern) == 0 {
		return len(text) == 0
	}
	if pattern[0] == '*' {
		return reference(pattern[1:], text) || len(text) > 0 && reference(pattern, text[1:])
	}
	return len(text) > 0 && (pattern[0] == '?' || pattern[0] == text[0]) && reference(pattern[1:], text[1:])
}

func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{{"a*b?c", "aabac"}, {"*é", "éé"}, {"\xff?", "\xfe*"}, {"**?a*", "aaa"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		// The reference takes exponential time.
		if len(pattern) > 10 || len(text) > 14 {
			t.Skip()
		}
		if got, want := wildcard.Match(pattern, text), reference([]rune(pattern), []rune(text)); got != want {
			t.Errorf("Match(%q, %q) = %v", pattern, text, got)
		}
	})
}
