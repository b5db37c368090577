// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

// find returns the place of the element that an element of a patch is for, or -1. Of
// several with the same keys it is the last, which is the one that counts where the API
// server allows several. When there is no element with the same keys, one that differs
// only in that either has no second key is taken.
func (l *list) find(id identity) int {
	if l.same != nil {
		return l.look(id)
	}
	similar := -1
	for i := len(l.elements) - 1; i >= 0; i-- {
		e := &l.elements[i]
		if e.gone || e.first != id.first {
			continue
		}
		if e.second == id.second {
			return i
		}
		if similar < 0 && (id.loose || e.second == "") {
			similar = i
		}
	}
	return similar
}

// look is find by the index.
func (l *list) look(id identity) int {
	if at := last(l, l.same, id.key()); at >= 0 {
		return at
	}
	if !id.loose {
		return last(l, l.same, [2]string{id.first, ""})
	}
	return last(l, l.alike, id.first)
}

// last returns the last of the places with a key whose element is not deleted, or -1.
// Those that come after it are forgotten.
func last[K comparable](l *list, places map[K][]int, key K) int {
	found := places[key]
	for len(found) > 0 && l.elements[found[len(found)-1]].gone {
		found = found[:len(found)-1]
		places[key] = found
	}
	if len(found) == 0 {
		return -1
	}
	return found[len(found)-1]
}

// eachSame calls do with the places of the elements with the same keys as one, in order.
func (l *list) eachSame(at int, do func(int)) {
	id := l.elements[at].key()
	if l.same != nil {
		for _, i := range l.same[id] {
			do(i)
		}
		return
	}
	for i := range l.elements {
		if e := &l.elements[i]; !e.gone && e.key() == id {
			do(i)
		}
	}
}

// result returns the list of the elements in the order in which they come.
func (l *list) result() outcome {
	changed := l.changed || l.old == nil
	for i, at := range l.front {
		changed = changed || i != at
	}
	if !changed {
		return outcome{value: l.old}
	}
	result := make([]any, 0, len(l.elements))
	for _, at := range l.front {
		if e := &l.elements[at]; !e.gone {
			result = append(result, e.value)
		}
	}
	for i := range l.elements {
		if e := &l.elements[i]; !e.gone && !e.touched {
			result = append(result, e.value)
		}
	}
	return outcome{value: result, changed: true}
}
