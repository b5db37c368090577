// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// maxSortedFields bounds the work of putting the fields of one map in order;
	// of larger maps only the number is shown.
	maxSortedFields = 1_000
	// minItemBytes is the room that each item gets that is shown: name, value and
	// what stands between.
	minItemBytes = 2*leastBytes + len(":,")
	// countBytes is the room for the item that counts those left out.
	countBytes = len(`{"...":"1234567890 more"},`)
)

// items are the elements of a list or the fields of a map.
type items struct {
	encoder    *encoder
	begin, end string
	length     int
	at         func(i int) item // nil when only the length is shown
}

// item is one of them. Elements have no name.
type item struct {
	named bool
	name  string
	value ref.Val
}

func (e *encoder) elementsOf(list traits.Lister) items {
	length, _ := list.Size().(types.Int)
	return items{encoder: e, begin: "[", end: "]", length: int(length), at: func(i int) item { return item{value: list.Get(types.Int(i))} }}
}

// fieldsOf returns the fields of a map in the order of their names.
func (e *encoder) fieldsOf(m traits.Mapper) items {
	length, _ := m.Size().(types.Int)
	fields := items{encoder: e, begin: "{", end: "}", length: int(length)}
	if length > maxSortedFields {
		return fields
	}
	type key struct {
		name string
		key  ref.Val
	}
	var keys []key
	for it := m.Iterator(); it.HasNext() == types.True; {
		next := it.Next()
		name, ok := next.Value().(string)
		if !ok {
			name = fmt.Sprint(next.Value())
		}
		keys = append(keys, key{name, next})
	}
	e.work += uint64(len(keys))
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.key.Type().TypeName(), b.key.Type().TypeName()))
	})
	fields.length = len(keys)
	fields.at = func(i int) item { return item{named: true, name: keys[i].name, value: m.Get(keys[i].key)} }
	return fields
}

// size returns the length of all items with what stands around them, or
// something above limit.
func (s items) size(limit, depth int) int {
	if s.at == nil || depth >= maxValueDepth {
		return min(countBytes, limit+1)
	}
	total := len(s.begin) + len(s.end)
	for i := 0; i < s.length && total <= limit; i++ {
		total += s.encoder.itemSize(s.at(i), limit-total, depth+1)
	}
	return total
}

// itemSize includes what separates the item from the next.
func (e *encoder) itemSize(i item, limit, depth int) int {
	total := len(",")
	if len(i.name) > limit {
		return limit + 1
	}
	if i.named {
		total += len(stringJSON(i.name, math.MaxInt)) + len(":")
	}
	return total + e.size(i.value, max(0, limit-total), depth)
}

// encode writes the first items, as many as there is room for at minItemBytes,
// and the number of the others. The room is shared so that no item is cut for the
// sake of a larger one.
func (s items) encode(room, depth int) []byte {
	free := room - len(s.begin) - len(s.end)
	var sizes []int
	if s.at != nil && depth < maxValueDepth {
		sizes = s.fitting(free, depth)
	}
	if len(sizes) < s.length {
		free -= countBytes
	}
	out := bytes.NewBufferString(s.begin)
	level := share(sizes, free)
	for i, full := range sizes {
		if i > 0 {
			out.WriteString(",")
		}
		s.encoder.writeItem(out, s.at(i), full, min(full, level), depth+1)
	}
	if left := s.length - len(sizes); left > 0 {
		if len(sizes) > 0 {
			out.WriteString(",")
		}
		count := fmt.Sprintf(`"...":"%d more"`, left)
		if s.begin == "[" {
			count = "{" + count + "}"
		}
		out.WriteString(count)
	}
	out.WriteString(s.end)
	return out.Bytes()
}

// fitting returns the sizes of the items that are shown.
func (s items) fitting(free, depth int) []int {
	var sizes []int
	least := 0
	for i := range s.length {
		size := s.encoder.itemSize(s.at(i), free, depth+1)
		if least += min(size, minItemBytes); least > free {
			least -= min(size, minItemBytes)
			break
		}
		sizes = append(sizes, size)
	}
	if len(sizes) == s.length {
		return sizes
	}
	for len(sizes) > 0 && least > free-countBytes {
		least -= min(sizes[len(sizes)-1], minItemBytes)
		sizes = sizes[:len(sizes)-1]
	}
	return sizes
}

// share returns what each item gets at most, when those that need less leave the
// rest to the others.
func share(sizes []int, free int) int {
	sorted := slices.Sorted(slices.Values(sizes))
	for i, size := range sorted {
		if level := free / (len(sorted) - i); size > level {
			return level
		}
		free -= size
	}
	return math.MaxInt
}

// writeItem writes an item of the given full size into room.
func (e *encoder) writeItem(out *bytes.Buffer, i item, full, room, depth int) {
	room -= len(",")
	if i.named {
		nameRoom := math.MaxInt
		if full-len(",") > room {
			nameRoom = room / 2
		}
		name := stringJSON(i.name, nameRoom)
		out.Write(name)
		out.WriteString(":")
		room -= len(name) + len(":")
	}
	out.Write(e.encode(i.value, room, depth))
}
