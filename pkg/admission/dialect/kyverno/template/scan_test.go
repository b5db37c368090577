// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"regexp"
	"slices"
	"testing"
)

// scanned is what scan must find, as Kyverno says it.
func scanned(text string) []span {
	var spans []span
	for _, at := range regexp.MustCompile(`(?:^|[^\\])(\{\{(?:[^{}]|\{[^{}]*\})*\}\})`).FindAllStringSubmatchIndex(text, -1) {
		spans = append(spans, span{start: at[2], end: at[3]})
	}
	return spans
}

// referred is what nextReference must find, as Kyverno says it, but for the character
// before a reference.
func referred(text string) []span {
	var spans []span
	for _, at := range regexp.MustCompile(`^(\$\(.[^ ]*\))|[^\\](\$\(.[^ ]*\))`).FindAllStringSubmatchIndex(text, -1) {
		group := at[2:4]
		if group[0] < 0 {
			group = at[4:6]
		}
		spans = append(spans, span{start: group[0], end: group[1]})
	}
	return spans
}

// unescaped is what unescapeReferences must return, as Kyverno says it.
func unescaped(text string) string {
	return regexp.MustCompile(`\\(\$\(.[^ )]*\))`).ReplaceAllString(text, "$1")
}

func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		"", "{{a}}", "x{{a}}{{b}}{{c}}", `\{{a}}`, `\\{{a}}`, "{{{a}}", "{{{a}}}", "{{ {a}{b} }}", "{{a{{b}}}}", "é{{a}}", "{{a}} }}",
		"{{{{a}}}}", "{{ {a} {{b", "$(a)", "x$(a)$(b)", `\$(a)`, "$(a b)", "$()", "$())", "$( a)", "$(\na)", `\$(a) \$(b c) \$( d) \$(e`, "$(a)\n$(b)",
		`\$\$(a)`, `\$(\$(a)b`, `\$()`, `\$())`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := scan(text), scanned(text); !slices.Equal(got, want) {
			t.Errorf("scan(%q) = %v, want %v", text, got, want)
		}
		var references []span
		for from := 0; ; {
			start, end := nextReference(text, from)
			if start < 0 {
				break
			}
			references = append(references, span{start: start, end: end})
			from = end
		}
		if want := referred(text); !slices.Equal(references, want) {
			t.Errorf("references of %q: %v, want %v", text, references, want)
		}
		if got, want := unescapeReferences(text), unescaped(text); got != want {
			t.Errorf("unescapeReferences(%q) = %q, want %q", text, got, want)
		}
	})
}
