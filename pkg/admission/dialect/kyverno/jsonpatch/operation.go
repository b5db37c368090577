// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsonpatch reads the JSON patches of Kyverno's rules and applies them to
// decoded objects: RFC 6902 as github.com/evanphx/json-patch/v5 reads it, with the three
// options that Kyverno's pkg/engine/mutate/patch sets: negative indices, nothing to do
// where a path to remove is missing, and missing parents made by add.
//
// Where that library loses data or is at odds with itself, this package does what
// RFC 6902 says. A null is a missing parent whoever wrote it, an escaped name of a
// missing parent is unescaped, an empty name is a name, and numbers are compared by
// value.
//
// Objects are changed by copy on write: the result shares all that no operation has
// touched with the object. The package does not know what a rule is, whether one
// applies, or how long it may take; what a patch may do to memory is bounded here.
package jsonpatch

import (
	"fmt"
	"strings"
)

const (
	// maxOperations is how many operations a patch may have.
	maxOperations = 1000
	// maxDepth is how deep a value may be nested that a patch puts somewhere, counted
	// from the root of the object.
	maxDepth = 1000
	// maxPadding is how many nulls an operation may fill a list up with.
	maxPadding = 1000
	// maxText is the size in bytes up to which a patch is parsed.
	maxText = 3 << 20
)

// The operations of RFC 6902.
const (
	opAdd     = "add"
	opRemove  = "remove"
	opReplace = "replace"
	opMove    = "move"
	opCopy    = "copy"
	opTest    = "test"
)

// Operation is one operation of a JSON patch.
type Operation struct {
	Op   string
	Path string
	From string // of move and copy
	// Value is that of add, replace and test: decoded JSON, which is not modified and
	// becomes a part of objects.
	Value any

	// path and from are the names and indices in Path and From.
	path, from []string
}

// newOperation returns an operation that is ready to be applied, or says what is wrong
// with it.
func newOperation(op, path, from string, value any) (Operation, error) {
	o := Operation{Op: op, Path: path, From: from, Value: value}
	var err error
	if o.path, err = split(path); err != nil {
		return o, fmt.Errorf("path %q %w", excerpt(path), err)
	}
	if op != opMove && op != opCopy {
		return o, nil
	}
	if o.from, err = split(from); err != nil {
		return o, fmt.Errorf("from %q %w", excerpt(from), err)
	}
	return o, nil
}

// split returns the unescaped names and indices of a JSON pointer. A ~ that escapes
// nothing stands for itself.
func split(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, errNoSlash
	}
	tokens := strings.Split(pointer[1:], "/")
	if len(tokens) > maxDepth {
		return nil, errTooDeep
	}
	if strings.Contains(pointer, "~") {
		for i, token := range tokens {
			tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		}
	}
	return tokens, nil
}

// excerpt keeps messages short.
func excerpt(text string) string {
	const longest = 200
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "..."
}
