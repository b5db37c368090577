// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

// mergeOne is mergeElements for a patch with one element, of which most have no more: it
// looks at the keys of a list without making something of each of its elements. It says
// whether it can do that, which is when one key tells the elements apart.
func mergeOne(old, patch []any, s *schema, depth int) (merged outcome, done bool, fault *Error) {
	l := &list{keys: s.keys, old: old}
	overlay, ok := patch[0].(map[string]any)
	if !ok || len(old) == 0 || len(l.keys) == 0 || l.hasBothKeys(patch) || l.hasBothKeys(old) {
		return outcome{}, false, nil
	}
	id, fault := l.identify(overlay)
	if fault != nil {
		return outcome{}, true, fault.at(0)
	}
	last, count := lastOf(old, l.keys[0].name, id.first)
	var now outcome
	if last < 0 {
		now, fault = createMap(overlay, s.elementSchema(), depth+1)
	} else {
		now, fault = becomeOf(old[last], overlay, s.elementSchema(), depth)
	}
	if fault != nil {
		return outcome{}, true, fault.at(0)
	}
	if value, changed := inFront(old, l.keys[0].name, id.first, last, count, now); changed {
		return outcome{value: value, changed: true}, true, nil
	}
	return outcome{value: old}, true, nil
}

// inFront returns a list with the elements whose key has a value in front, of which the
// last becomes another one, or without all of them when that is gone. Last is below 0 when
// there is none yet. It says whether that is another list.
func inFront(elements []any, key, value string, last, count int, now outcome) ([]any, bool) {
	switch {
	case last < 0 && now.gone:
		return nil, false
	case last < 0:
		return headed(now.value, elements, nil), true
	case !now.gone && !now.changed && count == last+1: // they are in front already
		return nil, false
	case count == 1 && !now.gone:
		return headed(now.value, elements[:last], elements[last+1:]), true
	}
	return gathered(elements, key, value, last, count, now), true
}

// headed returns a list of an element and of others.
func headed(first any, before, after []any) []any {
	result := make([]any, 0, 1+len(before)+len(after))
	return append(append(append(result, first), before...), after...)
}

// lastOf returns the place of the last element whose key has a value, or -1, and how many
// there are.
func lastOf(elements []any, key, value string) (last, count int) {
	last = -1
	for i := range elements {
		if hasKey(elements[i], key, value) {
			last = i
			count++
		}
	}
	return last, count
}

func hasKey(element any, key, value string) bool {
	m, ok := element.(map[string]any)
	if !ok {
		return false
	}
	if found, ok := m[key].(string); ok {
		return found == value
	}
	return text(m[key]) == value
}

// gathered is inFront for several elements, or for some that are gone.
func gathered(elements []any, key, value string, last, count int, now outcome) []any {
	result := make([]any, count, len(elements))
	front := 0
	for i, element := range elements {
		if i > last {
			result = append(result, elements[i:]...)
			break
		}
		if !hasKey(element, key, value) {
			result = append(result, element)
			continue
		}
		if i == last && now.changed {
			element = now.value
		}
		result[front] = element
		front++
	}
	if now.gone {
		return result[count:]
	}
	return result
}
