// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

// Added returns how many bytes of JSON stand in a decoded value where another has not
// the same, about: what has been written to make one of the other. It is false when that
// is more than maxBytes, or nested deeper than levels. Parts that are the same in memory
// are not walked, so that the work follows what was changed by copy on write.
func Added(from, to any, maxBytes, levels int) (int, bool) {
	left := maxBytes
	if !added(from, to, &left, levels) {
		return 0, false
	}
	return maxBytes - left, true
}

// added takes what stands in to alone from left, and says whether it was enough.
func added(from, to any, left *int, depth int) bool {
	switch to := to.(type) {
	case map[string]any:
		if from, ok := from.(map[string]any); ok {
			return sameMap(from, to) || addedFields(from, to, left, depth-1)
		}
	case []any:
		if from, ok := from.([]any); ok {
			return sameList(from, to) || addedElements(from, to, left, depth-1)
		}
	default:
		if equalScalars(to, from) {
			return true
		}
	}
	return measure(to, left, depth)
}

func addedFields(from, to map[string]any, left *int, depth int) bool {
	if depth < 0 {
		return false
	}
	for key, after := range to {
		before, was := from[key]
		if !was {
			*left -= stringSize(key) + len(`:,`)
		}
		if was && !added(before, after, left, depth) || !was && !measure(after, left, depth) {
			return false
		}
	}
	return *left >= 0
}

// addedElements leaves out what has only moved because of what came or went before it.
func addedElements(from, to []any, left *int, depth int) bool {
	if depth < 0 {
		return false
	}
	for len(from) > 0 && len(to) > 0 && evidentlyEqual(from[0], to[0]) {
		from, to = from[1:], to[1:]
	}
	for len(from) > 0 && len(to) > 0 && evidentlyEqual(from[len(from)-1], to[len(to)-1]) {
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	for i, after := range to {
		*left -= len(`,`)
		if i < len(from) && !added(from[i], after, left, depth) || i >= len(from) && !measure(after, left, depth) {
			return false
		}
	}
	return *left >= 0
}
