// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// table is the kinds with their shapes in a row. Shapes that say the same are one. The
// shape 0 says nothing.
type table struct {
	kinds  []kind
	shapes []*shape
	// numbers holds the place of every shape in the row.
	numbers map[*shape]int
}

// number puts the shapes that kinds lead to in a row, in the order in which a walk
// over the kinds meets them.
func number(kinds []kind) table {
	nothing := &shape{}
	t := table{kinds: kinds, shapes: []*shape{nothing}, numbers: map[*shape]int{nothing: 0}}
	met := meet(kinds)
	classes := classify(met)
	first := map[int]int{}
	for _, s := range met {
		if !s.matters {
			t.numbers[s] = 0
			continue
		}
		place, ok := first[classes[s]]
		if !ok {
			place = len(t.shapes)
			first[classes[s]] = place
			t.shapes = append(t.shapes, s)
		}
		t.numbers[s] = place
	}
	return t
}

// meet returns all shapes that the kinds lead to.
func meet(kinds []kind) []*shape {
	var met []*shape
	seen := map[*shape]bool{}
	var walk func(s *shape)
	walk = func(s *shape) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		met = append(met, s)
		for _, name := range slices.Sorted(maps.Keys(s.fields)) {
			walk(s.fields[name])
		}
		walk(s.elements)
	}
	for _, k := range kinds {
		walk(k.shape)
	}
	return met
}

// classify gives shapes that say the same, all the way down, the same number. It first
// takes all to be the same, and then tells apart what differs at sight, until nothing
// new comes to light.
func classify(shapes []*shape) map[*shape]int {
	classes := map[*shape]int{}
	for count := 0; ; {
		texts := map[string]int{}
		next := map[*shape]int{}
		for _, s := range shapes {
			text := s.text(classes)
			if _, ok := texts[text]; !ok {
				texts[text] = len(texts)
			}
			next[s] = texts[text]
		}
		if len(texts) == count {
			return classes
		}
		count, classes = len(texts), next
	}
}

// text says what a shape says, and of those it leads to only the class.
func (s *shape) text(classes map[*shape]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %d %q", s.matters, classes[s], s.keys)
	if s.elements != nil {
		fmt.Fprintf(&b, " elements %d", classes[s.elements])
	}
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		fmt.Fprintf(&b, " %q %d", name, classes[s.fields[name]])
	}
	return b.String()
}
