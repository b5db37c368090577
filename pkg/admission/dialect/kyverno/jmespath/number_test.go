// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"math"
	"testing"
)

func TestCompareNumbers(t *testing.T) {
	const exact = 1 << 53
	tests := []struct {
		left, right any
		sign        int
		ordered     bool
	}{
		{int64(1), int64(2), -1, true},
		{int64(1), 1.0, 0, true},
		{1.0, int64(1), 0, true},
		{int64(1), 1.5, -1, true},
		{1.5, int64(1), 1, true},
		{int64(-1), -1.5, 1, true},
		{-1.5, int64(-1), -1, true},
		{int64(exact + 1), float64(exact), 1, true},
		{float64(exact), int64(exact + 1), -1, true},
		{int64(math.MaxInt64), float64(1 << 63), -1, true},
		{int64(math.MinInt64), -float64(1 << 63), 0, true},
		{int64(math.MinInt64), -1e300, 1, true},
		{int64(math.MaxInt64), math.Inf(1), -1, true},
		{int64(0), math.Copysign(0, -1), 0, true},
		{2.5, 2.5, 0, true},
		{math.NaN(), 1.0, 0, false},
		{int64(1), math.NaN(), 0, false},
		{int64(1), "1", 0, false},
		{nil, nil, 0, false},
	}
	for _, test := range tests {
		sign, ordered := compareNumbers(test.left, test.right)
		if sign != test.sign || ordered != test.ordered {
			t.Errorf("%v and %v: got %d, %t, want %d, %t", test.left, test.right, sign, ordered, test.sign, test.ordered)
		}
	}
}
