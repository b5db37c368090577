// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"errors"
	"sync"
)

// errIncomplete keeps a view whose build has panicked from being taken for one.
var errIncomplete = errors.New("a view of the request could not be built")

// Key names one view that is derived from a Request, such as the values that
// one policy language needs. Declare it as a package variable of the package
// that owns the view. Keys are compared by identity.
type Key[T any] struct {
	name string
	// lasting says that copies of a Request share the view.
	lasting bool
}

// NewKey returns a new key; name is for debugging only.
func NewKey[T any](name string) *Key[T] { return &Key[T]{name: name} }

// NewLastingKey returns a new key of a view that follows from neither the object nor the
// time of a request, so that copies with others share it.
func NewLastingKey[T any](name string) *Key[T] { return &Key[T]{name: name, lasting: true} }

func (k *Key[T]) String() string { return k.name }

// views are those that are derived from one request, few as they are: each is a
// derived of its own type.
type views struct {
	mu   sync.Mutex
	list []any
}

type derived[T any] struct {
	key   *Key[T]
	once  sync.Once
	value T
	err   error
}

// Derive builds the view named by key once per Request and shares it, its error
// included. build must not depend on anything but the request.
func Derive[T any](r *Request, key *Key[T], build func(*Request) (T, error)) (T, error) {
	in := &r.views
	if key.lasting {
		in = r.lasting
	}
	view := viewOf(in, key)
	view.once.Do(func() {
		view.err = errIncomplete // stays when build panics
		view.value, view.err = build(r)
	})
	return view.value, view.err
}

// viewOf returns the view named by key, which may not be built yet.
func viewOf[T any](v *views, key *Key[T]) *derived[T] {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, view := range v.list {
		if known, ok := view.(*derived[T]); ok && known.key == key {
			return known
		}
	}
	added := &derived[T]{key: key}
	v.list = append(v.list, added)
	return added
}
