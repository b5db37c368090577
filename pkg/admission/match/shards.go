// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import "maps"

const shardCount = 512

// shards is a map that is cheap to copy with a few changes. Once it is shared
// it must not be modified. Nil is empty.
type shards[K comparable, V any] [shardCount]map[K]V

func (s *shards[K, V]) get(hash uint64, k K) V {
	if s == nil {
		var none V
		return none
	}
	return s[hash%shardCount][k]
}

// draft is a copy of shards that may be modified until it is shared. It copies
// the shards that are written, and only those.
type draft[K comparable, V any] struct {
	*shards[K, V]
	owned [shardCount]bool
}

func newDraft[K comparable, V any](base *shards[K, V]) *draft[K, V] {
	next := &shards[K, V]{}
	if base != nil {
		*next = *base
	}
	return &draft[K, V]{shards: next}
}

// writable returns the shard of a hash.
func (d *draft[K, V]) writable(hash uint64) map[K]V {
	i := hash % shardCount
	if !d.owned[i] {
		d.owned[i] = true
		d.shards[i] = maps.Clone(d.shards[i])
		if d.shards[i] == nil {
			d.shards[i] = map[K]V{}
		}
	}
	return d.shards[i]
}
