// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import "strconv"

// list appends what leads from one list to the other, or a replacement of the whole list
// where that is shorter.
func (d *differ) list(from, to []any, depth int) {
	start := d.mark()
	first := 0
	for first < min(len(from), len(to)) && Equal(from[first], to[first]) {
		first++
	}
	last := 0
	for last < min(len(from), len(to))-first && Equal(from[len(from)-1-last], to[len(to)-1-last]) {
		last++
	}
	before, after := from[first:len(from)-last], to[first:len(to)-last]
	limit := smallPatch
	at := first
	for _, s := range align(before, after) {
		at = d.step(s, before, after, at, depth)
		if d.size-start.size <= limit {
			continue
		}
		if d.replaceIfShorter(start, to, depth) {
			return
		}
		limit = 2 * (d.size - start.size)
	}
	d.replaceIfShorter(start, to, depth)
}

// step appends what leads from a part of one list to its counterpart in the other, both
// at index at, and returns the index behind it.
func (d *differ) step(s step, before, after []any, at, depth int) int {
	switch s.kind {
	case paired:
		d.at(at, func() { d.element(before[s.from], after[s.to], depth+1) })
		return at + 1
	case inserted:
		d.at(at, func() { d.append(Add, after[s.to]) })
		return at + 1
	case removed:
		d.at(at, func() { d.append(Remove, nil) })
	}
	return at
}

// at does something at an index of the list.
func (d *differ) at(index int, do func()) {
	end := len(d.path)
	d.path = strconv.AppendInt(append(d.path, '/'), int64(index), 10)
	do()
	d.path = d.path[:end]
}

// element is value for the element of a list, which is replaced where that is shorter:
// what stands at an index need not be the same thing that was changed.
func (d *differ) element(from, to any, depth int) {
	start := d.mark()
	d.value(from, to, depth)
	d.replaceIfShorter(start, to, depth)
}

// replaceIfShorter replaces the operations since start by one that replaces the value
// at the path, if that is shorter, and says whether it did.
func (d *differ) replaceIfShorter(start mark, to any, depth int) bool {
	changes := d.size - start.size
	if changes == 0 || depth == 0 {
		return false
	}
	operation := len(`{"op":"replace","path":,"value":},`) + stringSize(string(d.path))
	if _, fits := Size(to, changes-operation-1, maxDepth); !fits {
		return false
	}
	d.backTo(start)
	d.append(Replace, to)
	return true
}
