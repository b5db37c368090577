// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

// mergeList merges a patch into a list, or replaces the list when its elements have no
// keys. Without a list, old is nil.
func mergeList(old, patch []any, s *schema, depth int) (outcome, *Error) {
	directive, content, fault := directiveOfList(patch)
	if fault != nil {
		return outcome{}, fault
	}
	if directive == directiveDelete {
		return outcome{gone: true}, nil
	}
	directed := len(content) < len(patch)
	if !s.isMerged() {
		if directed && directive == directiveMerge {
			return outcome{}, errorf("the elements of this list have no key to merge them by; without a directive the list is replaced")
		}
		return outcome{value: content, changed: directed || old != nil}, nil
	}
	if directive == directiveReplace {
		old = nil
	}
	merged, fault := mergeElements(old, content, s, depth)
	merged.changed = merged.changed || directed
	return merged, fault
}

// directiveOfList returns the directive of a list, and the list without it. An element
// that has nothing but a directive is one for the whole list.
func directiveOfList(patch []any) (directive, []any, *Error) {
	found := directiveMerge
	var content []any
	for i, element := range patch {
		m, ok := element.(map[string]any)
		if _, has := m[directiveKey]; !ok || !has || len(m) > 1 {
			if content != nil {
				content = append(content, element)
			}
			continue
		}
		directive, fault := directiveOf(m)
		if fault != nil {
			return "", nil, fault.at(i)
		}
		if content == nil {
			found = directive
			content = append(make([]any, 0, len(patch)), patch[:i]...)
		}
	}
	if content == nil {
		content = patch
	}
	return found, content, nil
}

// mergeElements merges the elements of a patch into those of a list with the same keys.
// When a single key tells the elements apart, those that the patch has come first and in
// its order; otherwise new ones come first and the others stay where they are.
func mergeElements(old, patch []any, s *schema, depth int) (outcome, *Error) {
	if len(patch) == 1 {
		if merged, done, fault := mergeOne(old, patch, s, depth); done {
			return merged, fault
		}
	}
	l := newList(old, patch, s.keys)
	taken, fault := l.mergeAll(patch, s.elementSchema(), depth)
	if fault != nil {
		return outcome{}, fault
	}
	if taken && len(old) == 0 {
		// Nothing was there, and all that the patch has was taken as it is.
		return outcome{value: patch, changed: old != nil && len(patch) > 0}, nil
	}
	return l.result(), nil
}

// mergeAll merges the elements of a patch into those with the same keys. It says whether
// all were new and taken as they are.
func (l *list) mergeAll(patch []any, s *schema, depth int) (taken bool, fault *Error) {
	taken = true
	for i, element := range patch {
		id, fault := l.identify(element)
		if fault != nil {
			return false, fault.at(i)
		}
		at := l.find(id)
		now, fault := l.become(at, element, s, depth)
		if fault != nil {
			return false, fault.at(i)
		}
		switch {
		case now.gone:
			l.remove(at)
			taken = false
		case at < 0:
			l.add(id, now.value)
			taken = taken && !now.changed
		default:
			l.set(at, now)
			taken = false
		}
	}
	return taken, nil
}

// become returns what becomes of the element at an index, which is below 0 when there
// is none, with an element of the patch.
func (l *list) become(at int, patch any, s *schema, depth int) (outcome, *Error) {
	overlay, ok := patch.(map[string]any)
	if !ok {
		// It is a scalar, which is its own key.
		if at < 0 {
			return outcome{value: patch}, nil
		}
		return outcome{value: l.elements[at].value}, nil
	}
	if at < 0 {
		return createMap(overlay, s, depth+1)
	}
	return becomeOf(l.elements[at].value, overlay, s, depth)
}

// becomeOf returns what becomes of an element with one of a patch.
func becomeOf(value any, overlay map[string]any, s *schema, depth int) (outcome, *Error) {
	directive, fault := directiveOf(overlay)
	if fault != nil {
		return outcome{}, fault
	}
	old, ok := value.(map[string]any)
	if !ok || directive == directiveReplace {
		// With kyaml the element only changes its place.
		return outcome{value: value}, nil
	}
	return mergeMap(old, overlay, s, depth+1)
}
