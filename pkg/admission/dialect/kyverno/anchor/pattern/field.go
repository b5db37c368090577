// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor/syntax"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/wildcard"
)

// field is a key of an object with its pattern. What its anchor asks for:
//
//	key     the value matches, and is null if the key is absent
//	(key)   the object counts only if the key is there and matches
//	<(key)  as (key), but the key may be absent
//	=(key)  the key is absent or matches
//	X(key)  the key is absent
//	^(key)  the key is absent, or a list that has an element for each pattern
type field struct {
	anchor syntax.Anchor
	key    string
	// many says that the key has wildcards.
	many bool
	// some says that any value will do that is not null.
	some    bool
	pattern node
}

func newField(source string, pattern any, at place) field {
	anchor, key := syntax.ParseKey(source)
	if anchor == syntax.Addition { // in a pattern, +(key) is the key itself, as in Kyverno
		anchor, key = syntax.None, source
	}
	return field{
		anchor: anchor, key: key,
		many: at == inLabels && wildcard.Contains(key),
		some: anchor == syntax.None && pattern == "*",
	}
}

func (f *field) match(object map[string]any) outcome {
	if f.many {
		if judged, ok := f.matchMany(object); ok {
			return judged
		}
	}
	value, ok := object[f.key]
	if ok || f.anchor == syntax.None {
		return f.judge(value)
	}
	if f.anchor == syntax.Condition {
		return skips
	}
	return holds
}

// judge judges the value of the key, which is there unless the field has no anchor.
func (f *field) judge(value any) outcome {
	switch f.anchor {
	case syntax.None:
		if !f.some {
			return f.pattern.match(value)
		}
		if value != nil {
			return holds
		}
	case syntax.Condition, syntax.Global:
		if f.pattern.match(value) != holds {
			return skips
		}
		return holds
	case syntax.Equality, syntax.Existence:
		return f.pattern.match(value)
	case syntax.Negation, syntax.Addition:
	}
	return fails
}

// matchMany judges the texts of all keys that a key with wildcards stands for. It is
// enough that one matches, but for anchors that allow no other value. Kyverno takes one
// of the keys, whichever comes first. It returns false if there is none.
func (f *field) matchMany(object map[string]any) (judged outcome, ok bool) {
	every := f.anchor == syntax.Equality || f.anchor == syntax.Global
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
