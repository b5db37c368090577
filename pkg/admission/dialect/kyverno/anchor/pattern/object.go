// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"maps"
	"slices"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor/syntax"
)

// object matches objects that have what its fields ask for, and more. It is validateMap
// of Kyverno's pkg/engine/validate.
type object struct {
	// anchored are the fields that are judged first and together.
	anchored []field
	// plain are the others, of which the first one that does not hold decides.
	plain []field
}

// place is where in an object's metadata a pattern lies. Keys of labels and annotations
// may have wildcards.
type place uint8

const (
	outside place = iota
	inMetadata
	inLabels
)

// below returns the place of what lies at a key.
func (p place) below(key string) place {
	switch {
	case key == "metadata":
		return inMetadata
	case p == inMetadata && (key == "labels" || key == "annotations"):
		return inLabels
	}
	return outside
}

func (c *compiler) object(pattern map[string]any, depth int, at place) (node, error) {
	compiled := &object{}
	var nested, flat []field
	for _, key := range slices.Sorted(maps.Keys(pattern)) {
		field := newField(key, pattern[key], at)
		before := c.anchors
		var err error
		if field.pattern, err = c.field(&field, pattern[key], depth-1, at.below(field.key)); err != nil {
			return nil, err
		}
		hasAnchors := c.anchors > before
		if field.anchor != syntax.None {
			c.anchors++
		}
		switch {
		case field.anchor != syntax.None && field.anchor != syntax.Global:
			compiled.anchored = append(compiled.anchored, field)
		case field.anchor == syntax.Global || hasAnchors:
			nested = append(nested, field)
		default:
			flat = append(flat, field)
		}
	}
	// The order is that of Kyverno. It shows where one field skips and another one fails.
	slices.Reverse(nested)
	compiled.plain = slices.Concat(nested, flat)
	return compiled, nil
}

func (c *compiler) field(field *field, pattern any, depth int, at place) (node, error) {
	if field.anchor == syntax.Existence {
		return c.existence(pattern, depth)
	}
	return c.node(pattern, depth, at)
}

func (o *object) match(value any) outcome {
	object, ok := value.(map[string]any)
	if !ok {
		return fails
	}
	if judged := o.matchAnchored(object); judged != holds {
		return judged
	}
	for i := range o.plain {
		if judged := o.plain[i].match(object); judged != holds {
			return judged
		}
	}
	return holds
}

// matchAnchored judges the anchored fields. Once a condition is not met, fields that
// fail do not matter any more; an empty field matters only if no other one holds.
func (o *object) matchAnchored(object map[string]any) outcome {
	var seen tally
	skipped := false
	for i := range o.anchored {
		judged := o.anchored[i].match(object)
		if !seen.add(judged) && !skipped {
			return fails
		}
		skipped = skipped || judged == skips
	}
	if skipped {
		return empty
	}
	return seen.outcome()
}
