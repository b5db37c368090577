// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shards holds maps that never change and are cheap to copy with a few
// changes, so that whoever reads one keeps what it was. It does not know what
// they hold.
package shards

import (
	"hash/maphash"
	"iter"
	"maps"
)

const count = 512

// Map is a map that is shared and must not be modified: a Draft makes another
// one. It is safe for concurrent use. Nil and the zero value are empty.
type Map[K comparable, V any] struct {
	hash   func(maphash.Seed, K) uint64 // of the first draft; keys with one hash share a shard
	seed   maphash.Seed
	length int
	shards [count]map[K]V
}

// Get returns the value of k and whether there is one.
func (m *Map[K, V]) Get(k K) (V, bool) {
	if m.Len() == 0 {
		var none V
		return none, false
	}
	value, ok := m.shards[m.hash(m.seed, k)%count][k]
	return value, ok
}

// Len returns the number of keys.
func (m *Map[K, V]) Len() int {
	if m == nil {
		return 0
	}
	return m.length
}

// All goes over the map in no particular order.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.Len() == 0 {
			return
		}
		for _, shard := range m.shards {
			for k, value := range shard {
				if !yield(k, value) {
					return
				}
			}
		}
	}
}

// Draft is a copy of a Map that may be modified. It copies the shards that are
// written, and only those. It is not safe for concurrent use.
type Draft[K comparable, V any] struct {
	next  *Map[K, V]
	owned [count]bool
}

// NewDraft returns a copy of base, which may be nil. hash places the keys: those
// that are written together are cheapest when their hashes are equal. It must be
// the same for all drafts that come of one map; nil means maphash.Comparable.
func NewDraft[K comparable, V any](base *Map[K, V], hash func(maphash.Seed, K) uint64) *Draft[K, V] {
	next := &Map[K, V]{}
	if base != nil {
		*next = *base
	}
	if next.hash == nil {
		next.hash, next.seed = hash, maphash.MakeSeed()
		if hash == nil {
			next.hash = maphash.Comparable[K]
		}
	}
	return &Draft[K, V]{next: next}
}

// Get returns the value of k, as written, and whether there is one.
func (d *Draft[K, V]) Get(k K) (V, bool) { return d.next.Get(k) }

// Set gives k a value.
func (d *Draft[K, V]) Set(k K, value V) {
	shard := d.writable(k)
	before := len(shard)
	shard[k] = value
	d.next.length += len(shard) - before
}

// Delete removes k.
func (d *Draft[K, V]) Delete(k K) {
	if _, ok := d.Get(k); !ok {
		return // nothing is copied for it
	}
	delete(d.writable(k), k)
	d.next.length--
}

// Map returns what has been written. The draft must not be used after that.
func (d *Draft[K, V]) Map() *Map[K, V] { return d.next }

func (d *Draft[K, V]) writable(k K) map[K]V {
	i := d.next.hash(d.next.seed, k) % count
	if !d.owned[i] {
		d.owned[i] = true
		d.next.shards[i] = maps.Clone(d.next.shards[i])
		if d.next.shards[i] == nil {
			d.next.shards[i] = map[K]V{}
		}
	}
	return d.next.shards[i]
}
