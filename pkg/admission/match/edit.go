// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"maps"
	"slices"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/internal/shards"
)

// change replaces the item of a name. Nil means absent.
type change[T any] struct {
	name     string
	old, new *Item[T]
}

// Edit returns a new index without the names of remove and with the items of
// add, which replace those of the same name; the last of a name in add counts.
// What is unchanged is shared with ix, so the cost is near to that of the change.
func (ix *Index[T]) Edit(remove []string, add []Item[T]) *Index[T] {
	next := &Index[T]{}
	if ix != nil {
		*next = *ix
	}
	names, buckets := shards.NewDraft(next.names, nil), shards.NewDraft(next.buckets, resourceHash)
	touched := map[key][]change[T]{}
	for _, c := range next.changes(remove, add) {
		if c.old != nil {
			names.Delete(c.name)
			for _, k := range keysOf(c.old.Criteria) {
				touched[k] = append(touched[k], change[T]{name: c.name, old: c.old})
			}
		}
		if c.new != nil {
			names.Set(c.name, c.new)
			for _, k := range keysOf(c.new.Criteria) {
				touched[k] = addTo(touched[k], c)
			}
		}
	}
	for k, changes := range touched {
		before, _ := buckets.Get(k)
		after := apply(before, changes, k)
		if len(after) == 0 {
			buckets.Delete(k)
		} else {
			buckets.Set(k, after)
		}
		next.shapes.add(k, len(after)-len(before))
	}
	next.names, next.buckets = names.Map(), buckets.Map()
	return next
}

// changes returns what an edit changes, in the order of names, each name once.
func (ix *Index[T]) changes(remove []string, add []Item[T]) []change[T] {
	wanted := make(map[string]*Item[T], len(remove)+len(add))
	for _, name := range remove {
		wanted[name] = nil
	}
	for i := range add {
		item := add[i] // the index must not share memory with its caller
		wanted[item.Name] = &item
	}
	changes := make([]change[T], 0, len(wanted))
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		old, _ := ix.names.Get(name)
		changes = append(changes, change[T]{name: name, old: old, new: wanted[name]})
	}
	return changes
}

// addTo adds c to the changes of a bucket. The removal of the same item, if it
// was in the bucket before, is the last of them.
func addTo[T any](changes []change[T], c change[T]) []change[T] {
	if last := len(changes) - 1; last >= 0 && changes[last].name == c.name {
		changes[last] = c
		return changes
	}
	return append(changes, change[T]{name: c.name, new: c.new})
}

// apply returns a new bucket of a key. Bucket and changes are in the order of names.
func apply[T any](bucket []entry[T], changes []change[T], k key) []entry[T] {
	after := make([]entry[T], 0, len(bucket)+len(changes))
	for _, c := range changes {
		i, found := slices.BinarySearchFunc(bucket, c.name, func(item entry[T], name string) int {
			return strings.Compare(item.Name, name)
		})
		after = append(after, bucket[:i]...)
		if c.new != nil {
			after = append(after, entry[T]{c.new, c.new.Criteria.guard(k)})
		}
		if found {
			i++
		}
		bucket = bucket[i:]
	}
	return append(after, bucket...)
}
