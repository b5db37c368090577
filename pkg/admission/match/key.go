// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"hash/maphash"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// lane separates keys that are looked up for different reasons.
type lane uint8

const (
	// always holds what must be tried with every request.
	always lane = iota
	// exact is looked up with the resource of the request.
	exact
	// equivalent is looked up with the resource of the request and with every
	// equivalent of it.
	equivalent
	// excluded holds the exclusions of what is in the equivalent lane. It is
	// looked up with equivalents of an unknown kind: an exclusion that matches
	// one is an error, even if no resource rule matches.
	excluded
	// kinded holds criteria that select by kind: the kind has the place of the
	// resource, and it is that of the object also where the request is about a
	// subresource.
	kinded

	laneCount
)

// key names one bucket of an index: values that a request may have, "*" for any.
type key struct {
	lane                                             lane
	operation, group, version, resource, subresource string
}

// shape has a bit for each dimension of a key that is a wildcard.
type shape uint8

const (
	anyOperation shape = 1 << iota
	anyGroup
	anyVersion
	anyResource
	anySubresource

	shapeCount = 1 << iota
)

func (k key) shape() shape {
	var s shape
	for bit, value := range [...]string{k.operation, k.group, k.version, k.resource, k.subresource} {
		if value == wildcard {
			s |= 1 << bit
		}
	}
	return s
}

// widen returns the key with wildcards where the shape has them.
func (k key) widen(s shape) key {
	if s&anyOperation != 0 {
		k.operation = wildcard
	}
	if s&anyGroup != 0 {
		k.group = wildcard
	}
	if s&anyVersion != 0 {
		k.version = wildcard
	}
	if s&anyResource != 0 {
		k.resource = wildcard
	}
	if s&anySubresource != 0 {
		k.subresource = wildcard
	}
	return k
}

// resourceHash keeps the keys of one resource together, so that a change to a policy
// touches few shards.
func resourceHash(seed maphash.Seed, k key) uint64 {
	return maphash.Comparable(seed, schema.GroupResource{Group: k.group, Resource: k.resource})
}

// maxKeys bounds the keys of one item. Rules multiply their dimensions, so a
// short policy can name very many combinations.
const maxKeys = 512

// keysOf returns the keys under which criteria are found, each once. Criteria
// that would have too many are indexed with less precision: for any version,
// then any operation, then any group, and in the end for every request.
func keysOf(c *Criteria) []key {
	if c == nil || !c.compiled || c.everyResource {
		return []key{{lane: always}}
	}
	for _, widened := range [...]shape{0, anyVersion, anyVersion | anyOperation, anyVersion | anyOperation | anyGroup} {
		if keys, ok := c.keys(widened); ok {
			return keys
		}
	}
	return []key{{lane: always}}
}

// keys returns false when there are too many at this precision.
func (c *Criteria) keys(widened shape) ([]key, bool) {
	if c.byKind {
		return c.keysOfKinds(widened)
	}
	own := exact
	if c.equivalent {
		own = equivalent
	}
	keys, ok := appendKeys(nil, own, c.rules, widened)
	if ok && c.equivalent {
		keys, ok = appendKeys(keys, excluded, c.excludes, widened)
	}
	return unique(keys), ok
}

func appendKeys(keys []key, in lane, rules []rule, widened shape) ([]key, bool) {
	for i := range rules {
		r := &rules[i]
		operations := dimension(r.operations, widened&anyOperation != 0)
		groups := dimension(r.groups, widened&anyGroup != 0)
		versions := dimension(r.versions, widened&anyVersion != 0)
		for _, operation := range operations {
			for _, group := range groups {
				for _, version := range versions {
					if len(keys)+len(r.resources) > maxKeys {
						return nil, false
					}
					for _, p := range r.resources {
						keys = append(keys, key{in, operation, group, version, p.resource, p.subresource})
					}
				}
			}
		}
	}
	return keys, true
}

// dimension returns the values to index. A wildcard makes the others idle; an
// empty list matches nothing, however wide.
func dimension(values []string, widened bool) []string {
	if len(values) > 0 && (widened || slices.Contains(values, wildcard)) {
		return []string{wildcard}
	}
	return values
}

func unique(keys []key) []key {
	seen := make(map[key]struct{}, len(keys))
	return slices.DeleteFunc(keys, func(k key) bool {
		_, again := seen[k]
		seen[k] = struct{}{}
		return again
	})
}

func (k key) in(l lane) key {
	k.lane = l
	return k
}
