// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor/syntax"
)

// references replaces $(path), with or without an operator before the path, by scalars
// of the rule, as Kyverno's substituteReferencesIfAny does. Paths are texts in which \/
// stands for the slash of a key.
type references struct {
	rule any
	base []string
	// scalars are those of the rule by their paths without anchors, once there has
	// been a reference.
	scalars map[string]any
}

// replace replaces the references of a text at a path of the value.
func (r *references) replace(source string, at []string) (string, error) {
	if r == nil || !strings.Contains(source, "$(") {
		return source, nil
	}
	var text strings.Builder
	from := 0
	for {
		start, end := nextReference(source, from)
		if start < 0 {
			break
		}
		reference := source[start:end]
		value, err := r.resolve(reference, at)
		if err != nil {
			return "", fmt.Errorf("reference %s: %w", excerpt(reference), err)
		}
		if text.Len()+len(source)+len(value) > maxText {
			return "", errTooLong
		}
		text.WriteString(source[from:start])
		text.WriteString(value)
		from = end
	}
	text.WriteString(source[from:])
	return unescapeReferences(text.String()), nil
}

// nextReference finds a reference beyond from, as Kyverno's regular expression
// RegexReferences does: up to the last parenthesis before a space, not after a
// backslash, and not right after another one.
func nextReference(source string, from int) (start, end int) {
	// space is the first one beyond the last place that was looked at, and last the end of
	// the last parenthesis before it.
	space, last := -1, -1
	for at := from; ; at++ {
		next := strings.Index(source[at:], "$(")
		if next < 0 {
			return -1, -1
		}
		at += next
		if at > 0 && (at == from || source[at-1] == '\\') {
			continue
		}
		rest := afterFirst(source, at+len("$("))
		if rest < 0 {
			continue
		}
		if space < rest {
			run, _, _ := strings.Cut(source[rest:], " ")
			space, last = rest+len(run), rest+strings.LastIndexByte(run, ')')+1
		}
		if last > rest {
			return at, last
		}
	}
}

// afterFirst returns the place after the first character that stands at a place, or -1
// when that is the end of a line or of the text.
func afterFirst(source string, at int) int {
	first, width := utf8.DecodeRuneInString(source[at:])
	if width == 0 || first == '\n' {
		return -1
	}
	return at + width
}

// unescapeReferences puts $(X) where \$(X) stands.
func unescapeReferences(source string) string {
	const escape = `\$(`
	var text strings.Builder
	// stop is the first space or parenthesis beyond the last place that was looked at.
	written, stop := 0, -1
	for at := 0; ; {
		next := strings.Index(source[at:], escape)
		if next < 0 {
			break
		}
		start := at + next
		at = start + len(escape)
		rest := afterFirst(source, at)
		if rest < 0 {
			continue
		}
		if stop < rest {
			stop = len(source)
			if found := strings.IndexAny(source[rest:], " )"); found >= 0 {
				stop = rest + found
			}
		}
		if stop < len(source) && source[stop] == ')' {
			text.WriteString(source[written:start])
			written, at = start+1, stop+1
		}
	}
	if written == 0 {
		return source
	}
	text.WriteString(source[written:])
	return text.String()
}

// resolve returns what stands for a reference at a path of the value.
func (r *references) resolve(reference string, at []string) (string, error) {
	target := strings.Trim(reference, "$()")
	operator := leadingOperator(target)
	target = target[len(operator):]
	if target == "" {
		return "", errors.New("it names no path")
	}
	if !path.IsAbs(target) {
		target = path.Join(joined(slices.Concat(r.base, at)), target)
	}
	if r.scalars == nil {
		r.scalars = map[string]any{}
		r.collect(r.rule, "", 0)
	}
	value, ok := r.scalars[target]
	if !ok {
		// Kyverno knows no sibling of a reference below an anchor.
		value = r.scalars[withoutAnchors(target)]
	}
	if value == nil {
		return "", fmt.Errorf("there is no text or number at %s of the rule", excerpt(target))
	}
	switch value := value.(type) {
	case string:
		return operator + value, nil
	case int64:
		if operator != "" {
			return operator + strconv.FormatFloat(float64(value), 'f', 6, 64), nil
		}
	case float64:
		if operator != "" {
			return operator + strconv.FormatFloat(value, 'f', 6, 64), nil
		}
	}
	return "", fmt.Errorf("%s of the rule is %s, not a string", excerpt(target), kind(value))
}

// leadingOperator returns the operator with which a reference begins.
func leadingOperator(target string) string {
	if len(target) < 2 {
		return ""
	}
	for _, operator := range []string{">=", "<=", ">", "<", "!"} {
		if strings.HasPrefix(target, operator) {
			return operator
		}
	}
	return ""
}

// collect notes the scalars below a value of the rule.
func (r *references) collect(value any, at string, depth int) {
	if depth > maxLevels {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			r.collect(value[key], at+joined([]string{key}), depth+1)
		}
	case []any:
		for i, item := range value {
			r.collect(item, at+"/"+strconv.Itoa(i), depth+1)
		}
	default:
		r.scalars[withoutAnchors(at)] = value
	}
}

// joined writes a path as references have it.
func joined(parts []string) string {
	var text strings.Builder
	for _, part := range parts {
		text.WriteByte('/')
		text.WriteString(strings.ReplaceAll(part, "/", `\/`))
	}
	return text.String()
}

// withoutAnchors replaces each part that is a key with an anchor by the key.
func withoutAnchors(at string) string {
	parts := strings.Split(at, "/")
	for i, part := range parts {
		_, parts[i] = syntax.ParseKey(part)
	}
	return "/" + path.Join(parts...)
}
