// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "math"

// unbounded is the amount that nothing is known about. Arithmetic saturates at it.
const unbounded = uint64(math.MaxUint64)

func plus(x, y uint64) uint64 {
	if x > unbounded-y {
		return unbounded
	}
	return x + y
}

// times multiplies. Nothing, any number of times, is nothing.
func times(x, y uint64) uint64 {
	if x == 0 || y == 0 {
		return 0
	}
	if x > unbounded/y {
		return unbounded
	}
	return x * y
}

// traversal is what passing once over size characters costs at most: the size times
// common.StringTraversalCostFactor of cel-go, rounded up. The one more than that
// makes good for the rounding of floating point numbers.
func traversal(size uint64) uint64 {
	if size == unbounded {
		return unbounded
	}
	return size/10 + 1
}

// pattern is what one character of text costs at most to match with a regular
// expression of size characters: the size times
// common.RegexStringLengthCostFactor of cel-go, rounded up.
func pattern(size uint64) uint64 {
	if size == unbounded {
		return unbounded
	}
	return size/4 + 1
}
