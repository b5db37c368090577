// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"cmp"
	"errors"
	"math"
)

// errNotFinite says that a result is a number that JSON has not, such as the average of
// an empty list.
var errNotFinite = errors.New("the result is no number of JSON (a division by zero, or too large)")

// finite fails for a number that JSON has not.
func finite(value any) error {
	if f, ok := value.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return errNotFinite
	}
	return nil
}

func isNumber(value any) bool {
	switch value.(type) {
	case int64, float64:
		return true
	}
	return false
}

// toFloat returns the nearest float64 of a number, and 0 of anything else.
func toFloat(value any) float64 {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// compareNumbers compares two numbers by their exact values. It returns false when one
// is not a number.
func compareNumbers(left, right any) (sign int, ordered bool) {
	switch l := left.(type) {
	case int64:
		switch r := right.(type) {
		case int64:
			return cmp.Compare(l, r), true
		case float64:
			return compareMixed(l, r)
		}
	case float64:
		switch r := right.(type) {
		case int64:
			sign, ordered = compareMixed(r, l)
			return -sign, ordered
		case float64:
			if math.IsNaN(l) || math.IsNaN(r) {
				return 0, false
			}
			return cmp.Compare(l, r), true
		}
	}
	return 0, false
}

func compareMixed(i int64, f float64) (sign int, ordered bool) {
	const beyond = 1 << 63
	switch {
	case math.IsNaN(f):
		return 0, false
	case f >= beyond:
		return -1, true
	case f < -beyond:
		return 1, true
	}
	whole := math.Trunc(f)
	if sign := cmp.Compare(i, int64(whole)); sign != 0 {
		return sign, true
	}
	return cmp.Compare(whole, f), true
}
