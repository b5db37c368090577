// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import "strings"

// A span is where a variable stands in a text, with its braces.
type span struct{ start, end int }

// scan finds the variables of a text, as Kyverno's regular expression RegexVariables
// does: those without variables inside, not after a backslash, and not right after
// another one, which is found when that has been replaced.
func scan(text string) []span {
	var spans []span
	for from, at := 0, 0; ; {
		next := strings.Index(text[at:], "{{")
		if next < 0 {
			return spans
		}
		at += next
		if at > 0 && (at == from || text[at-1] == '\\') {
			at++
			continue
		}
		end := variableEnd(text, at)
		if end < 0 {
			at++
			continue
		}
		spans = append(spans, span{start: at, end: end})
		from, at = end, end
	}
}

// variableEnd returns where the variable ends that begins at start, or -1 when there
// is none: it may hold braces in pairs, but not pairs within pairs.
func variableEnd(text string, start int) int {
	for at := start + 2; ; {
		next := strings.IndexAny(text[at:], "{}")
		if next < 0 {
			return -1
		}
		at += next
		if text[at] == '}' {
			if strings.HasPrefix(text[at:], "}}") {
				return at + 2
			}
			return -1
		}
		end := strings.IndexAny(text[at+1:], "{}")
		if end < 0 || text[at+1+end] == '{' {
			return -1
		}
		at += end + 2
	}
}

// between returns the expression of a variable, and whether it is shallow: whether its
// value is not looked at for variables.
func between(variable string) (expression string, shallow bool) {
	expression = strings.TrimSpace(variable[2 : len(variable)-2])
	if rest, ok := strings.CutPrefix(expression, "-"); ok {
		return strings.TrimSpace(rest), true
	}
	return expression, false
}

// unescape puts {{ where \{{ stands.
func unescape(text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	return strings.ReplaceAll(text, `\{{`, "{{")
}
