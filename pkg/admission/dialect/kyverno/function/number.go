// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Whole numbers as float64 from -2^63 up to, but without, 2^63 are those of int64.
const beyondInt64 = 1 << 63

// count returns an argument that says how many, without its fraction, and the next best
// number when it is too large for an int.
func count(args []any, index int) (int, error) {
	if index < len(args) {
		switch number := args[index].(type) {
		case int64:
			return int(max(math.MinInt, min(math.MaxInt, number))), nil
		case float64:
			switch {
			case number >= beyondInt64:
				return math.MaxInt, nil
			case number < -beyondInt64:
				return math.MinInt, nil
			default:
				return int(number), nil
			}
		}
	}
	return 0, fmt.Errorf("argument %d is missing or not a number", index+1)
}

// integer returns the value of a number, and false when it is not whole or too large.
func integer(number any) (int64, bool) {
	switch number := number.(type) {
	case int64:
		return number, true
	case float64:
		if number != math.Trunc(number) || number >= beyondInt64 || number < -beyondInt64 {
			return 0, false
		}
		return int64(number), true
	default:
		return 0, false
	}
}

// fraction returns the nearest float64 to a number.
func fraction(number any) (float64, bool) {
	switch number := number.(type) {
	case int64:
		return float64(number), true
	case float64:
		return number, true
	default:
		return 0, false
	}
}

// finite returns a number, or an error where JSON has no number.
func finite(number float64) (any, error) {
	if math.IsInf(number, 0) || math.IsNaN(number) {
		return nil, errors.New("the result is not a number or too large for one")
	}
	return number, nil
}

// plain returns a string as it is, and a number or boolean as a text. Fractions are
// rounded to the precision of 32 bits, as Kyverno does; whole numbers keep their
// digits, as they do not there.
func plain(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case bool:
		return strconv.FormatBool(value), true
	case int64:
		return strconv.FormatInt(value, 10), true
	case float64:
		precision := 32
		if value == math.Trunc(value) {
			precision = 64
		}
		return strconv.FormatFloat(value, 'f', -1, precision), true
	default:
		return "", false
	}
}
