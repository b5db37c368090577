// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"slices"
	"strings"
)

// Get returns the item of a name, and whether there is one.
func (ix *Index[T]) Get(name string) (Item[T], bool) {
	if ix.Len() == 0 {
		return Item[T]{}, false
	}
	item, ok := ix.names.Get(name)
	if !ok {
		return Item[T]{}, false
	}
	return *item, true
}

// All returns every item in the order of names.
func (ix *Index[T]) All() []Item[T] {
	if ix.Len() == 0 {
		return nil
	}
	items := make([]Item[T], 0, ix.Len())
	for _, item := range ix.names.All() {
		items = append(items, *item)
	}
	slices.SortFunc(items, func(a, b Item[T]) int { return strings.Compare(a.Name, b.Name) })
	return items
}
