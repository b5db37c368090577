// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

const (
	// manyElements is from how many elements on a list is indexed. For fewer, looking at
	// each is cheaper.
	manyElements = 32
	// fewPatches is for how many elements of a patch looking at each is cheaper, too.
	fewPatches = 4
)

// identity is the texts of an element's keys. The second is that which the API server
// would give it when the element has none, and "" when there is no such default.
type identity struct {
	first, second string
	// loose says that the element itself has no second key.
	loose bool
}

func (i identity) key() [2]string { return [2]string{i.first, i.second} }

// element is an element of a list on its way to the result.
type element struct {
	identity
	value any
	// touched says that the element is in front, gone that it is deleted, and patched that
	// a patch has something for it.
	touched, gone, patched bool
}

// list is the elements of an object's list, followed by what a patch adds.
type list struct {
	keys []key
	old  []any
	// inFront says that what a patch has comes in front of the others, even when it is
	// not new.
	inFront bool

	elements []element
	// front is the places of the elements that come first.
	front   []int
	changed bool

	// same and alike are the places of the elements with the same keys, and with the
	// same first key, when there are many.
	same  map[[2]string][]int
	alike map[string][]int
}

func newList(old, patch []any, keys []key) *list {
	l := &list{
		keys:     keys,
		old:      old,
		elements: make([]element, 0, len(old)+len(patch)),
		front:    make([]int, 0, len(patch)),
	}
	l.inFront = !l.hasBothKeys(old) && !l.hasBothKeys(patch)
	if len(old)+len(patch) > manyElements && len(patch) > fewPatches {
		l.same, l.alike = map[[2]string][]int{}, map[string][]int{}
	}
	for _, value := range old {
		// An element without key is kept where it is and never found.
		id, _ := l.identify(value)
		l.append(id, value)
	}
	return l
}

// hasBothKeys says whether an element has the second key. As with kyaml, a second key
// that no element has is none.
func (l *list) hasBothKeys(elements []any) bool {
	if len(l.keys) < 2 {
		return false
	}
	for _, element := range elements {
		if m, ok := element.(map[string]any); ok && text(m[l.keys[1].name]) != "" {
			return true
		}
	}
	return false
}

// identify returns the identity of an element, or why it has none.
func (l *list) identify(value any) (identity, *Error) {
	m, isMap := value.(map[string]any)
	if len(l.keys) == 0 {
		if id := text(value); id != "" {
			return identity{first: id}, nil
		}
		return identity{}, errorf("an element of this list must be a scalar and not empty, not %s", name(value))
	}
	if !isMap {
		return identity{}, errorf("an element of this list must be a map, not %s", name(value))
	}
	id := identity{first: text(m[l.keys[0].name])}
	if id.first == "" {
		return identity{}, errorf("an element of this list must have %q, which tells the elements apart", l.keys[0].name)
	}
	if len(l.keys) > 1 {
		id.second = text(m[l.keys[1].name])
		id.loose = id.second == ""
		if id.loose {
			id.second = l.keys[1].fallback
		}
	}
	return id, nil
}

// append puts an element at the end.
func (l *list) append(id identity, value any) {
	if l.same != nil && id.first != "" {
		l.same[id.key()] = append(l.same[id.key()], len(l.elements))
		l.alike[id.first] = append(l.alike[id.first], len(l.elements))
	}
	l.elements = append(l.elements, element{identity: id, value: value})
}

// add puts an element in front.
func (l *list) add(id identity, value any) {
	l.front = append(l.front, len(l.elements))
	l.append(id, value)
	l.elements[len(l.elements)-1].touched = true
	l.elements[len(l.elements)-1].patched = true
	l.changed = true
}

// set gives an element another value, and puts it and those with the same keys in front
// if that is where they go.
func (l *list) set(at int, now outcome) {
	l.put(at, now)
	if l.inFront && !l.elements[at].touched {
		l.eachSame(at, l.touch)
	}
}

// put gives one element another value, whatever its keys are.
func (l *list) put(at int, now outcome) {
	l.elements[at].patched = true
	if now.changed {
		l.elements[at].value = now.value
		l.changed = true
	}
}

// touch puts an element in front.
func (l *list) touch(at int) {
	if !l.elements[at].touched {
		l.elements[at].touched = true
		l.front = append(l.front, at)
	}
}

// remove deletes an element and those with the same keys. An index below 0 is none.
func (l *list) remove(at int) {
	if at < 0 {
		return
	}
	l.eachSame(at, func(i int) { l.elements[i].gone = true })
	if l.same != nil {
		delete(l.same, l.elements[at].key())
	}
	l.changed = true
}

// removeOnly deletes one element, whatever its keys are.
func (l *list) removeOnly(at int) {
	l.elements[at].gone = true
	l.changed = true
}

// removeOthers deletes the elements for which a patch has nothing.
func (l *list) removeOthers() {
	for i := range l.elements {
		if !l.elements[i].patched {
			l.elements[i].gone = true
			l.changed = true
		}
	}
}
