// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/wildcard"
)

// anchor is what a key of a pattern asks for.
type anchor uint8

const (
	// none is a key without an anchor: its value must match, and is null if absent.
	none anchor = iota
	// conditional is (key): the object counts only if the key is there and matches.
	conditional
	// global is <(key): as conditional, but the key may be absent.
	global
	// equality is =(key): the key is absent or matches.
	equality
	// negation is X(key): the key is absent.
	negation
	// existence is ^(key): the key is absent, or a list that has an element for each
	// pattern.
	existence
)

// parseKey returns the anchor of a key and the key without it. As in Kyverno, +(key)
// says nothing inside of an anchor: it is the key itself.
func parseKey(source string) (anchor, string) {
	text := strings.TrimSpace(source)
	opening := strings.IndexByte(text, '(')
	if opening < 0 || opening > 1 || text[len(text)-1] != ')' {
		return none, source
	}
	key := text[opening+1 : len(text)-1]
	if key == "" || strings.Contains(key, "\n") {
		return none, source
	}
	switch text[:opening] {
	case "":
		return conditional, key
	case "<":
		return global, key
	case "=":
		return equality, key
	case "X":
		return negation, key
	case "^":
		return existence, key
	}
	return none, source
}

// field is a key of an object with its pattern.
type field struct {
	anchor anchor
	key    string
	// many says that the key has wildcards.
	many bool
	// some says that any value will do that is not null.
	some    bool
	pattern node
}

func newField(source string, pattern any, at place) field {
	anchor, key := parseKey(source)
	return field{
		anchor: anchor, key: key,
		many: at == inLabels && wildcard.Contains(key),
		some: anchor == none && pattern == "*",
	}
}

func (f *field) match(object map[string]any) outcome {
	if f.many {
		if judged, ok := f.matchMany(object); ok {
			return judged
		}
	}
	value, ok := object[f.key]
	if ok || f.anchor == none {
		return f.judge(value)
	}
	if f.anchor == conditional {
		return skips
	}
	return holds
}

// judge judges the value of the key, which is there unless the field has no anchor.
func (f *field) judge(value any) outcome {
	switch f.anchor {
	case none:
		if !f.some {
			return f.pattern.match(value)
		}
		if value != nil {
			return holds
		}
	case conditional, global:
		if f.pattern.match(value) != holds {
			return skips
		}
		return holds
	case equality, existence:
		return f.pattern.match(value)
	case negation:
	}
	return fails
}

// matchMany judges the texts of all keys that a key with wildcards stands for. It is
// enough that one matches, but for anchors that allow no other value. Kyverno takes one
// of the keys, whichever comes first. It returns false if there is none.
func (f *field) matchMany(object map[string]any) (judged outcome, ok bool) {
	every := f.anchor == equality || f.anchor == global
	for key, value := range object {
		if _, isText := value.(string); !isText || !wildcard.Match(f.key, key) {
			continue
		}
		judged, ok = f.judge(value), true
		if (judged == holds) != every {
			break
		}
	}
	return judged, ok
}
