// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pattern judges values with the patterns that Kyverno policies have inside of
// the anchors of a strategic merge: what Kyverno's pkg/engine/validate and
// pkg/engine/pattern call a match. It does not know patches: it neither finds the
// anchors of one, nor says what becomes of a patch whose anchors do not match, and it
// resolves no variables.
package pattern

import (
	"errors"
	"fmt"
)

const (
	// maxDepth is how deep lists and objects of a pattern may lie in one another.
	maxDepth = 1000
	// maxParts is how many lists, objects, scalars and conditions in texts a pattern may
	// have: each of them may have to be compared with each part of a value.
	maxParts = 10_000
)

var (
	errTooDeep = fmt.Errorf("lists and objects lie more than %d deep in one another", maxDepth)
	errTooMany = fmt.Errorf("more than %d values and conditions", maxParts)
	errNotJSON = errors.New("no decoded JSON")
)

// Pattern is a prepared pattern. It is immutable and safe for concurrent use.
type Pattern struct {
	root node
	// text is root as MatchText reads it, if it is a scalar.
	text *text
}

// Compile prepares a pattern, which is decoded JSON. It fails if that is too large.
func Compile(pattern any) (*Pattern, error) {
	c := &compiler{}
	root, err := c.node(pattern, maxDepth, outside)
	if err != nil {
		return nil, err
	}
	compiled := &Pattern{root: root}
	scalar, ok := root.(leaf)
	if !ok {
		return compiled, nil
	}
	if compiled.text, ok = scalar.scalar.(*text); !ok {
		compiled.text, err = c.text(scalarText(pattern))
	}
	return compiled, err
}

// Match says whether a value, which is decoded JSON, matches the pattern, as
// MatchPattern of Kyverno's pkg/engine/validate does. It takes no longer than the size
// of the pattern times that of the value.
func (p *Pattern) Match(value any) bool {
	return p.root.match(value) == holds
}

// MatchText is Match as the anchors of a patch use it, after convertRNodeToInterface of
// Kyverno's pkg/engine/mutate/patch: a pattern that is a scalar stands for its text, and
// so does a value. Null is the text null, and lists and objects are as for Match, with
// all that is in them.
func (p *Pattern) MatchText(value any) bool {
	if p.text == nil {
		// A text is neither a list nor an object.
		return p.Match(value)
	}
	if list, ok := value.([]any); ok {
		return all(p.text, list)
	}
	return p.text.matchesJSON(value)
}

// outcome is what a node says of a value. The zero value matches nothing.
type outcome uint8

const (
	// fails is a value that does not match.
	fails outcome = iota
	// holds is a value that matches.
	holds
	// skips is an object that lacks what one of its conditions asks for. Above, the
	// object counts as none; alone, it does not match.
	skips
	// empty is a list or an object of which nothing but conditions that did not match
	// was left. It differs from skips in what it does to the conditions beside it.
	empty
)

// node is a part of a pattern.
type node interface {
	match(value any) outcome
}

// compiler prepares the parts of one pattern.
type compiler struct {
	// parts and anchors are how many there were until now.
	parts   int
	anchors int
}

func (c *compiler) node(pattern any, depth int, at place) (node, error) {
	if depth == 0 {
		return nil, errTooDeep
	}
	if err := c.count(1); err != nil {
		return nil, err
	}
	switch typed := pattern.(type) {
	case map[string]any:
		return c.object(typed, depth, at)
	case []any:
		return c.list(typed, depth)
	}
	scalar, err := c.scalar(pattern)
	if err != nil {
		return nil, err
	}
	return leaf{scalar}, nil
}

func (c *compiler) count(parts int) error {
	if c.parts += parts; c.parts > maxParts {
		return errTooMany
	}
	return nil
}
