// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

const (
	// maxCells bounds the work of an alignment that looks at all pairs of elements.
	maxCells = 64 * 64
	// window is how far an alignment of longer lists looks ahead.
	window = 16
)

// stepKind says what became of an element.
type stepKind uint8

const (
	paired   stepKind = iota // it is there on both sides, perhaps changed
	removed                  // it is only there before
	inserted                 // it is only there after
)

// step is one step along two lists.
type step struct {
	kind stepKind
	// from and to are the indices of the element, where it is there.
	from, to int
}

// align finds out which elements of two lists belong together. It is a guess: whatever
// it says, the steps lead from one list to the other.
func align(before, after []any) []step {
	if len(before) == 0 || len(after) == 0 {
		return gap(nil, 0, len(before), 0, len(after))
	}
	if len(before) == len(after) && (len(before) == 1 || sameNames(before, after)) {
		return gap(nil, 0, len(before), 0, len(after))
	}
	b, a := digests(before), digests(after)
	if len(b)*len(a) <= maxCells {
		return best(b, a)
	}
	return nearest(b, a)
}

// sameNames says whether the elements of two lists of one length have the same names:
// they have changed where they stand.
func sameNames(before, after []any) bool {
	for i := range before {
		b, _ := before[i].(map[string]any)
		a, _ := after[i].(map[string]any)
		if name, ok := b["name"].(string); !ok || a["name"] != name {
			return false
		}
	}
	return true
}

// gap appends the steps between two pairs: what nothing is known about is paired in
// order, since a replacement is shorter than a removal and an insertion.
func gap(steps []step, from, fromEnd, to, toEnd int) []step {
	for ; from < fromEnd && to < toEnd; from, to = from+1, to+1 {
		steps = append(steps, step{kind: paired, from: from, to: to})
	}
	for ; from < fromEnd; from++ {
		steps = append(steps, step{kind: removed, from: from})
	}
	for ; to < toEnd; to++ {
		steps = append(steps, step{kind: inserted, to: to})
	}
	return steps
}

// best pairs the elements, without crossing, that have most in common: the longest
// common subsequence, weighted.
func best(before, after []digest) []step {
	width := len(after) + 1
	// common[i*width+j] is what before[i:] and after[j:] have in common at most.
	common := make([]int, (len(before)+1)*width)
	shared := make([]int, len(before)*len(after))
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			s := before[i].common(&after[j])
			shared[i*len(after)+j] = s
			here := max(common[(i+1)*width+j], common[i*width+j+1])
			if s > 0 {
				here = max(here, common[(i+1)*width+j+1]+s)
			}
			common[i*width+j] = here
		}
	}
	var steps []step
	from, to := 0, 0 // those up to which there are steps
	for i, j := 0, 0; i < len(before) && j < len(after); {
		here := common[i*width+j]
		switch s := shared[i*len(after)+j]; {
		case s > 0 && here == common[(i+1)*width+j+1]+s:
			steps = append(gap(steps, from, i, to, j), step{kind: paired, from: i, to: j})
			i, j = i+1, j+1
			from, to = i, j
		case here == common[(i+1)*width+j]:
			i++
		default:
			j++
		}
	}
	return gap(steps, from, len(before), to, len(after))
}

// nearest pairs equal elements that are near to each other, from the front.
func nearest(before, after []digest) []step {
	var steps []step
	i, j := 0, 0
	for i < len(before) && j < len(after) {
		di, dj := ahead(before[i:], after[j:])
		steps = append(gap(steps, i, i+di, j, j+dj), step{kind: paired, from: i + di, to: j + dj})
		i, j = i+di+1, j+dj+1
	}
	return gap(steps, i, len(before), j, len(after))
}

// ahead returns how many elements to leave out on both sides to come to two that are
// equal: none, if there are no such within the window.
func ahead(before, after []digest) (i, j int) {
	for distance := range window {
		for i := range distance + 1 {
			if j := distance - i; i < len(before) && j < len(after) && before[i].whole == after[j].whole {
				return i, j
			}
		}
	}
	return 0, 0
}
