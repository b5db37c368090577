// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package merge does the strategic merge of Kyverno's patchStrategicMerge on decoded
// JSON, as kyaml's yaml/merge2 does it with new elements in front. The lists that are
// merged, and their keys, are those of Kubernetes 1.21, whose schemas kyaml embeds.
//
// It does not know anchors, which are gone from a patch before it is merged, nor
// variables, nor the schemas of custom resources, whose lists are replaced.
//
// Where kyaml loses what nobody asked it to delete, this package does not; the test
// TestBetterThanUpstream names every difference.
package merge

// maxDepth is how deep patches may be nested.
const maxDepth = 200

// outcome is what becomes of a value.
type outcome struct {
	value any
	// gone says that there is no value any more.
	gone bool
	// changed says that the value is another than before. It may be, and yet be equal.
	changed bool
}

// Merge returns an object with a patch merged into it: decoded JSON, in which an
// *Elements may stand for a list. Neither is modified; the result shares with both what
// it took unchanged, and is the object itself when the patch changes nothing. The
// object's apiVersion and kind decide which lists are merged. Errors are of type *Error.
func Merge(object map[string]any, patch any) (map[string]any, error) {
	overlay, ok := patch.(map[string]any)
	if !ok {
		return nil, errorf("the patch must be a map, not %s", name(patch))
	}
	merged, fault := mergeMap(object, overlay, nil, 0)
	if fault != nil {
		return nil, fault
	}
	result, ok := merged.value.(map[string]any)
	if merged.gone || !ok {
		return nil, errorf("the patch must not delete the whole object")
	}
	return result, nil
}

// merge merges a patch into a value. Null and no value are the same in an object; null
// in a patch deletes.
func merge(old, patch any, s *schema, depth int) (outcome, *Error) {
	if patch == nil {
		return outcome{gone: true}, nil
	}
	if old == nil {
		added, fault := create(patch, s, depth)
		added.changed = true
		return added, fault
	}
	switch patch := patch.(type) {
	case map[string]any:
		if old, ok := old.(map[string]any); ok {
			return mergeMap(old, patch, s, depth+1)
		}
	case []any:
		if old, ok := old.([]any); ok {
			return mergeList(old, patch, s, depth+1)
		}
	case *Elements:
		if old, ok := old.([]any); ok {
			return patch.mergeIn(old, s, depth+1)
		}
	default:
		if name(old) == name(patch) {
			return overwrite(old, patch), nil
		}
	}
	return outcome{}, errorf("the patch has %s where the object has %s; only null replaces a value by one of another kind", name(patch), name(old))
}

// create returns what a patch adds where the object has nothing: the patch without its
// nulls and directives.
func create(patch any, s *schema, depth int) (outcome, *Error) {
	switch patch := patch.(type) {
	case nil:
		return outcome{gone: true}, nil
	case map[string]any:
		return createMap(patch, s, depth+1)
	case []any:
		return mergeList(nil, patch, s, depth+1)
	case *Elements:
		return patch.mergeIn(nil, s, depth+1)
	default:
		return outcome{value: patch}, nil
	}
}
