// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import "reflect"

// maxDepth is beyond what any decoder of JSON takes, which is 10,000 levels, so that
// only values that grow while they are changed come near it.
const maxDepth = 20_000

// Equal says whether two decoded values are the same JSON, numbers by their value.
// Parts that are the same in memory are not walked. Values that are nested more than
// 20,000 levels deep are equal to nothing but themselves.
func Equal(a, b any) bool { return equal(a, b, maxDepth) }

func equal(a, b any, depth int) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && (sameMap(a, b) || depth > 0 && equalMaps(a, b, depth-1))
	case []any:
		b, ok := b.([]any)
		return ok && (sameList(a, b) || depth > 0 && equalLists(a, b, depth-1))
	default:
		return equalScalars(a, b)
	}
}

func equalMaps(a, b map[string]any, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		other, ok := b[key]
		if !ok || !equal(value, other, depth) {
			return false
		}
	}
	return true
}

func equalLists(a, b []any, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equal(a[i], b[i], depth) {
			return false
		}
	}
	return true
}

// equalScalars compares values of which a is neither a map nor a list. A value of
// another type than those of decoded JSON is equal to nothing.
func equalScalars(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case string:
		b, ok := b.(string)
		return ok && a == b
	case int64:
		switch b := b.(type) {
		case int64:
			return a == b
		case float64:
			return equalNumbers(a, b)
		}
	case float64:
		switch b := b.(type) {
		case float64:
			return a == b
		case int64:
			return equalNumbers(b, a)
		}
	}
	return false
}

// equalNumbers compares without the rounding of either side: two integers beyond 2^53
// can have the same float64.
func equalNumbers(i int64, f float64) bool {
	whole, ok := integer(f)
	return ok && whole == i
}

// integer returns the int64 that has the value of f.
func integer(f float64) (int64, bool) {
	const limit = 1 << 63 // the first that is too large
	if f < -limit || f >= limit {
		return 0, false
	}
	i := int64(f)
	return i, float64(i) == f
}

// sameMap says whether two maps are one in memory.
func sameMap(a, b map[string]any) bool {
	return len(a) == len(b) && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// sameList says whether two lists are one in memory.
func sameList(a, b []any) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// same says whether two maps or two lists are one in memory.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && sameMap(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && sameList(a, b)
	}
	return false
}
