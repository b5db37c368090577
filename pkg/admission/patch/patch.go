// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patch finds the JSON patch (RFC 6902) that leads from one decoded object to
// another. It applies none, and does not know why an object was changed.
//
// Decoded JSON is nil, bool, int64, float64, string, []any and map[string]any. Both
// kinds of numbers are equal when they have the same value. Nothing that is given to
// this package is modified, and what it returns shares parts with it.
package patch

import (
	"encoding/json"
	"fmt"
)

// The operations that lead from one object to another.
const (
	Add     = "add"
	Remove  = "remove"
	Replace = "replace"
)

// Operation is one operation of a JSON patch: add, remove or replace.
type Operation struct {
	Op    string
	Path  string
	Value any // of add and replace; decoded JSON
}

// MarshalJSON writes the operation as RFC 6902 wants it: add and replace have a value
// even when that is null, and remove has none.
func (o Operation) MarshalJSON() ([]byte, error) {
	if o.Op == Remove {
		return json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path})
	}
	encoded, err := json.Marshal(struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}{o.Op, o.Path, o.Value})
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", o.Op, o.Path, err)
	}
	return encoded, nil
}
