// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syntax reads the anchors that stand around keys. What they ask for depends on
// where they stand: in an overlay (package anchor), or in a pattern inside of one
// (package pattern).
package syntax

import "strings"

// Anchor is what stands around a key.
type Anchor uint8

const (
	// None is a key without anchor.
	None Anchor = iota
	// Condition is (key).
	Condition
	// Global is <(key).
	Global
	// Addition is +(key).
	Addition
	// Equality is =(key).
	Equality
	// Negation is X(key).
	Negation
	// Existence is ^(key).
	Existence
)

// ParseKey returns the anchor of a key and the key without it, as Parse of Kyverno's
// pkg/engine/anchor reads it: space around an anchor does not count.
func ParseKey(source string) (Anchor, string) {
	text := strings.TrimSpace(source)
	opening := strings.IndexByte(text, '(')
	if opening < 0 || opening > 1 || text[len(text)-1] != ')' {
		return None, source
	}
	key := text[opening+1 : len(text)-1]
	if key == "" || strings.Contains(key, "\n") {
		return None, source
	}
	switch text[:opening] {
	case "":
		return Condition, key
	case "<":
		return Global, key
	case "+":
		return Addition, key
	case "=":
		return Equality, key
	case "X":
		return Negation, key
	case "^":
		return Existence, key
	}
	return None, source
}
