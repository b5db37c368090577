// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"math/bits"
	"slices"

	"github.com/portcullis-dev/portcullis/pkg/admission/internal/shards"
)

// Item is one value of an Index.
type Item[T any] struct {
	Name     string // identity and order
	Criteria *Criteria
	Value    T
}

// entry is an item in a bucket.
type entry[T any] struct {
	*Item[T]

	guard guard
}

// Index finds the values whose criteria may match a request. What that costs
// depends on the values found and not on those installed. An Index is immutable
// and safe for concurrent use; nil and the zero value are empty.
type Index[T any] struct {
	names   *shards.Map[string, *Item[T]]
	buckets *shards.Map[key, []entry[T]] // each in the order of names
	shapes  shapes
}

// shapes says which keys can exist, to save the lookup of those that do not.
type shapes struct {
	count   [laneCount][shapeCount]int // of items in buckets
	present [laneCount]uint32          // a bit for each shape with a count
}

func (s *shapes) add(k key, change int) {
	shape := k.shape()
	s.count[k.lane][shape] += change
	if s.count[k.lane][shape] == 0 {
		s.present[k.lane] &^= 1 << shape
	} else {
		s.present[k.lane] |= 1 << shape
	}
}

// maxBuckets is how many buckets can be found for one resource: those of always
// and of each shape in three lanes.
const maxBuckets = 1 + 3*shapeCount

// Candidates appends to buf the values whose criteria may match the subject, in
// the order of their names, each once. It may include values that do not match;
// it includes every value for which Matches reports a match or an error, unless what its
// kinds say of objects keeps it out. It does not allocate when buf has room, the resource
// has no equivalents and nothing is kept out.
func (ix *Index[T]) Candidates(s *Subject, buf []T) []T {
	if ix.Len() == 0 {
		return buf
	}
	var space [maxBuckets][]entry[T]
	req := s.request
	found := ix.appendBuckets(space[:0], key{lane: always})
	k := key{
		operation: string(req.Operation),
		group:     req.RequestResource.Group, version: req.RequestResource.Version,
		resource: req.RequestResource.Resource, subresource: req.RequestSubResource,
	}
	found = ix.appendBuckets(found, k.in(exact))
	found = ix.appendBuckets(found, k.in(equivalent))
	found = ix.appendKinded(found, s)
	if ix.shapes.present[equivalent]|ix.shapes.present[excluded] == 0 {
		return merge(found, buf)
	}
	for _, other := range s.equivalents() {
		if other.Resource == req.RequestResource {
			continue
		}
		k.group, k.version, k.resource = other.Resource.Group, other.Resource.Version, other.Resource.Resource
		found = ix.appendBuckets(found, k.in(equivalent))
		if other.Kind.Empty() {
			found = ix.appendBuckets(found, k.in(excluded))
		}
	}
	return merge(found, buf)
}

// appendBuckets appends the buckets of k and of every wider key.
func (ix *Index[T]) appendBuckets(found [][]entry[T], k key) [][]entry[T] {
	for present := ix.shapes.present[k.lane]; present != 0; present &= present - 1 {
		wider := k.widen(shape(bits.TrailingZeros32(present))) //nolint:gosec // At most 31, since present is not 0.
		if bucket, ok := ix.buckets.Get(wider); ok {
			found = append(found, bucket)
		}
	}
	return found
}

// merge appends the values of sorted buckets to buf in order, each once. It
// consumes buckets, the slice.
func merge[T any](buckets [][]entry[T], buf []T) []T {
	found := 0
	for _, bucket := range buckets {
		found += len(bucket)
	}
	buf = slices.Grow(buf, found)
	for len(buckets) > 1 {
		first := buckets[0][0].Item
		for _, bucket := range buckets[1:] {
			if bucket[0].Name < first.Name {
				first = bucket[0].Item
			}
		}
		buf = append(buf, first.Value)
		live := buckets[:0]
		for _, bucket := range buckets {
			if bucket[0].Item == first { // an index has one item of a name
				bucket = bucket[1:]
			}
			if len(bucket) > 0 {
				live = append(live, bucket)
			}
		}
		buckets = live
	}
	for _, bucket := range buckets {
		for i := range bucket {
			buf = append(buf, bucket[i].Value)
		}
	}
	return buf
}

// Len returns the number of items.
func (ix *Index[T]) Len() int {
	if ix == nil {
		return 0
	}
	return ix.names.Len()
}
