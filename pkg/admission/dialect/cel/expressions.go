// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"runtime"
	"sync"
	"weak"
)

// expressionKey says what an expression is compiled from.
type expressionKey struct {
	source   string
	declared declarations
	sees     string // the types of the variables that it may name
}

// expressions are those that policies use, so that what several of them say is
// compiled once. It keeps none alive. It is safe for concurrent use.
type expressions struct {
	mu    sync.Mutex
	known map[expressionKey]weak.Pointer[expression]
}

func newExpressions() *expressions {
	return &expressions{known: map[expressionKey]weak.Pointer[expression]{}}
}

// find returns nil for an expression that no policy uses.
func (x *expressions) find(key expressionKey) *expression {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.known[key].Value()
}

// add returns made, or what another has added meanwhile.
func (x *expressions) add(key expressionKey, made *expression) *expression {
	x.mu.Lock()
	defer x.mu.Unlock()
	if other := x.known[key].Value(); other != nil {
		return other
	}
	x.known[key] = weak.Make(made)
	runtime.AddCleanup(made, x.forget, key)
	return made
}

func (x *expressions) forget(key expressionKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known[key].Value() == nil { // it may have come back
		delete(x.known, key)
	}
}
