// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intern makes equal values one, so that memory holds them once and a
// pointer says which they are. It keeps no value alive and does not know what
// makes two of them equal.
package intern

import (
	"runtime"
	"sync"
	"weak"
)

// Table holds the values that are in use, by what they are equal by. The zero
// value is empty. It is safe for concurrent use and must not be copied.
type Table[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]weak.Pointer[V]
}

// Find returns the value of k that is in use, or nil.
func (t *Table[K, V]) Find(k K) *V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values[k].Value()
}

// Intern returns the value of k that is in use, or else value, which is the one in
// use from now on and must not be modified any more. value must be the pointer of
// an allocation of its own.
func (t *Table[K, V]) Intern(k K, value *V) *V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.values[k].Value(); known != nil {
		return known
	}
	if t.values == nil {
		t.values = map[K]weak.Pointer[V]{}
	}
	own := weak.Make(value)
	t.values[k] = own
	runtime.AddCleanup(value, func(k K) { t.forget(k, own) }, k)
	return value
}

// forget removes a value that nobody uses any more, unless an equal one has taken
// its place.
func (t *Table[K, V]) forget(k K, gone weak.Pointer[V]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values[k] == gone {
		delete(t.values, k)
	}
}

// Len returns the number of values that are in use or not forgotten yet.
func (t *Table[K, V]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.values)
}
