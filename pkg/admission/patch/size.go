// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"strconv"
	"unicode/utf8"
)

// Size returns the number of bytes of a decoded value as JSON, as encoding/json writes
// it, and false when that is more than maxBytes, or the value is nested deeper than
// levels: a scalar has none. It walks no further than it needs to see that.
func Size(value any, maxBytes, levels int) (int, bool) {
	left := maxBytes
	if !measure(value, &left, levels) {
		return 0, false
	}
	return maxBytes - left, true
}

// measure takes the size of value from left, and says whether it was enough.
func measure(value any, left *int, depth int) bool {
	switch v := value.(type) {
	case map[string]any:
		if depth == 0 {
			return false
		}
		*left -= max(2+2*len(v)-1, 2) // braces, colons and commas
		for key, inner := range v {
			*left -= stringSize(key)
			if !measure(inner, left, depth-1) {
				return false
			}
		}
	case []any:
		if depth == 0 {
			return false
		}
		*left -= max(2+len(v)-1, 2) // brackets and commas
		for _, inner := range v {
			if !measure(inner, left, depth-1) {
				return false
			}
		}
	default:
		*left -= scalarSize(value)
	}
	return *left >= 0
}

func scalarSize(value any) int {
	var digits [32]byte
	switch v := value.(type) {
	case string:
		return stringSize(v)
	case int64:
		return len(strconv.AppendInt(digits[:0], v, 10))
	case float64:
		return len(strconv.AppendFloat(digits[:0], v, 'g', -1, 64))
	case bool:
		if !v {
			return len("false")
		}
	}
	return len("true") // and of null
}

// stringSize returns the size of a string in quotes, with its escapes.
func stringSize(s string) int {
	total := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f':
			total++
		case c < ' ' || c == '<' || c == '>' || c == '&':
			total += len(`\u0000`) - 1
		case c >= utf8.RuneSelf:
			// The two line separators that are escaped are too rare to look for.
		}
	}
	return total
}
