// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor

import "strings"

// kind says what a key of an overlay asks for.
type kind uint8

const (
	// plain is a key without anchor: the value is merged.
	plain kind = iota
	// conditional is (key): the key is there, and its value matches.
	conditional
	// global is <(key): as conditional, for the whole overlay.
	global
	// add is +(key): the value is merged unless the key is there.
	add
	// foreign are =(key), ^(key) and X(key), which only say something inside of a
	// condition.
	foreign
)

// parseKey returns the kind of a key and the key without its anchor, as Parse of
// Kyverno's pkg/engine/anchor reads it.
func parseKey(source string) (kind, string) {
	text := strings.TrimSpace(source)
	opening := strings.IndexByte(text, '(')
	if opening < 0 || opening > 1 || text[len(text)-1] != ')' {
		return plain, source
	}
	key := text[opening+1 : len(text)-1]
	if key == "" || strings.Contains(key, "\n") {
		return plain, source
	}
	switch text[:opening] {
	case "":
		return conditional, key
	case "<":
		return global, key
	case "+":
		return add, key
	case "=", "^", "X":
		return foreign, key
	}
	return plain, source
}

// hasAdd says whether a value is a map that has a key of the form +(key). A condition
// with such a value only asks whether its key is there.
func hasAdd(value any) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for key := range object {
		if found, _ := parseKey(key); found == add {
			return true
		}
	}
	return false
}
