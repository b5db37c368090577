// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import "maps"

// directiveKey is the key of a directive in a patch.
const directiveKey = "$patch"

// directive says what a patch does to a map or a list, as $patch does.
type directive string

const (
	directiveMerge   directive = "merge"
	directiveReplace directive = "replace"
	directiveDelete  directive = "delete"
)

// directiveOf returns the directive of a map, which is merge when it has none.
func directiveOf(patch map[string]any) (directive, *Error) {
	value, ok := patch[directiveKey]
	if !ok {
		return directiveMerge, nil
	}
	switch found := directive(text(value)); found {
	case directiveMerge, directiveReplace, directiveDelete:
		return found, nil
	default:
		return "", errorf("%q is no directive; there are merge, replace and delete", text(value)).in(directiveKey)
	}
}

func mergeMap(old, patch map[string]any, s *schema, depth int) (outcome, *Error) {
	if s == nil {
		s = schemaOfAny(old, patch)
	}
	switch directive, fault := directiveOf(patch); {
	case fault != nil:
		return outcome{}, fault
	case directive == directiveDelete:
		return outcome{gone: true}, nil
	case directive == directiveReplace:
		added, fault := createMap(patch, s, depth)
		added.changed = true
		return added, fault
	}
	return eachValue(old, patch, depth, func(key string, value any) (outcome, *Error) {
		return merge(old[key], value, s.field(key), depth)
	})
}

func createMap(patch map[string]any, s *schema, depth int) (outcome, *Error) {
	if s == nil {
		s = schemaOfAny(patch)
	}
	directive, fault := directiveOf(patch)
	if fault != nil {
		return outcome{}, fault
	}
	if directive == directiveDelete {
		return outcome{gone: true}, nil
	}
	_, stripped := patch[directiveKey]
	if stripped {
		patch = maps.Clone(patch)
		delete(patch, directiveKey)
	}
	created, fault := eachValue(patch, patch, depth, func(key string, value any) (outcome, *Error) {
		return create(value, s.field(key), depth)
	})
	created.changed = created.changed || stripped
	return created, fault
}

// eachValue returns a map with what becomes of the values of a patch, but for the
// directive. It copies the map with the first change. Of several faults it returns that
// of the first key, since maps have no order.
func eachValue(from, patch map[string]any, depth int, become func(key string, value any) (outcome, *Error)) (outcome, *Error) {
	if depth >= maxDepth {
		return outcome{}, errorf("the patch is nested deeper than %d levels", maxDepth)
	}
	to, changed := from, false
	var first *Error
	var firstKey string
	for key, value := range patch {
		if key == directiveKey {
			continue
		}
		now, fault := become(key, value)
		if fault != nil {
			if first == nil || key < firstKey {
				first, firstKey = fault.in(key), key
			}
			continue
		}
		if now.gone {
			if _, ok := to[key]; !ok {
				continue
			}
		} else if !now.changed {
			continue
		}
		if !changed {
			to, changed = maps.Clone(from), true
		}
		if now.gone {
			delete(to, key)
		} else {
			to[key] = now.value
		}
	}
	if first != nil {
		return outcome{}, first
	}
	return outcome{value: to, changed: changed}, nil
}
