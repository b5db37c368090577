// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"slices"
	"strings"
)

const (
	// diffDepth is how deep differences are looked for: what differs below is replaced
	// as a whole. Objects of Kubernetes are seldom 30 levels deep.
	diffDepth = 64
	// smallPatch is the size in bytes up to which what changed within an object stays a
	// list of changes, whatever the object's own size.
	smallPatch = 4 << 10
	// maxOverhead is how many times larger than the object the changes within it may be.
	// A change of a short value needs far more bytes for its path than for itself, and
	// still says better what was changed; but a key of a megabyte must not stand in the
	// paths of ten thousand changes.
	maxOverhead = 8
	// maxSize is what sizes are counted up to.
	maxSize = 1 << 30
)

// Diff returns the operations that lead from one decoded value to another when they are
// applied one after the other: those on an object key by key, in the order of the keys,
// those on a list for the elements that came, went or changed, or the list as a whole
// where that is shorter. There are none when nothing has changed. Nothing depends on
// the order of maps.
//
// Parts that are the same in memory are not walked, so that the work follows what was
// changed by copy on write. The encoded patch is never much larger than to itself.
func Diff(from, to any) []Operation {
	d := differ{}
	d.value(from, to, 0)
	return d.operations
}

// differ collects operations.
type differ struct {
	operations []Operation
	// size is that of the operations as JSON, without what surrounds them.
	size int
	// path leads to the value that is compared.
	path []byte
}

// mark is a state to which a differ can go back.
type mark struct{ operations, size int }

func (d *differ) mark() mark { return mark{operations: len(d.operations), size: d.size} }

func (d *differ) backTo(m mark) {
	clear(d.operations[m.operations:])
	d.operations = d.operations[:m.operations]
	d.size = m.size
}

// value appends what leads from one value to the other at the path.
func (d *differ) value(from, to any, depth int) {
	if same(from, to) {
		return
	}
	if depth < diffDepth {
		switch from := from.(type) {
		case map[string]any:
			if to, ok := to.(map[string]any); ok {
				d.object(from, to, depth)
				return
			}
		case []any:
			if to, ok := to.([]any); ok {
				d.list(from, to, depth)
				return
			}
		}
	}
	if !Equal(from, to) {
		d.append(Replace, to)
	}
}

// object appends what leads from one object to the other, key by key.
func (d *differ) object(from, to map[string]any, depth int) {
	start := d.mark()
	limit := smallPatch
	for _, key := range changedKeys(from, to) {
		before, was := from[key]
		after, is := to[key]
		end := d.enter(key)
		switch {
		case !is:
			d.append(Remove, nil)
		case !was:
			d.append(Add, after)
		default:
			d.value(before, after, depth+1)
		}
		d.path = d.path[:end]
		if d.size-start.size <= limit || depth == 0 {
			continue
		}
		// The root is never replaced: not all that apply patches can do that.
		if _, fits := Size(to, (d.size-start.size)/maxOverhead, maxDepth); fits {
			d.backTo(start)
			d.append(Replace, to)
			return
		}
		limit = 2 * (d.size - start.size)
	}
}

// changedKeys returns the keys of which the values are not evidently the same, in order.
func changedKeys(from, to map[string]any) []string {
	var keys []string
	for key, before := range from {
		if after, ok := to[key]; !ok || !evidentlyEqual(before, after) {
			keys = append(keys, key)
		}
	}
	for key := range to {
		if _, ok := from[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// evidentlyEqual says whether two values are equal without walking them.
func evidentlyEqual(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return same(a, b)
	}
	return equalScalars(a, b)
}

// append appends an operation at the path.
func (d *differ) append(op string, value any) {
	d.operations = append(d.operations, Operation{Op: op, Path: string(d.path), Value: value})
	d.size += len(`{"op":"","path":},`) + len(op) + stringSize(string(d.path))
	if op != Remove {
		size, ok := Size(value, maxSize, maxDepth)
		if !ok {
			size = maxSize
		}
		d.size += len(`,"value":`) + size
	}
}

// enter makes path that of a field of the object, and returns the length it had.
func (d *differ) enter(key string) int {
	end := len(d.path)
	d.path = append(d.path, '/')
	if strings.ContainsAny(key, "~/") {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
	}
	d.path = append(d.path, key...)
	return end
}
