// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Calculating with quantities takes as long as their numbers are, written out. These are
// far beyond what a float64 can be.
const (
	maxOperand  = 512
	maxExponent = 1000
)

// operand returns what an argument stands for. A text that can be a quantity is one,
// even if it can be a duration too: 15m is a quantity.
func operand(value any, position int) (any, error) {
	if _, ok := fraction(value); ok {
		return value, nil
	}
	text, ok := value.(string)
	if !ok {
		return nil, fmt.Errorf("operand %d is %s: it must be a number, a quantity or a duration", position, typeName(value))
	}
	if len(text) > maxOperand {
		return nil, fmt.Errorf("operand %d is longer than %d characters", position, maxOperand)
	}
	if quantity, err := parseQuantity(text); err == nil {
		return quantity, nil
	}
	if duration, err := time.ParseDuration(text); err == nil {
		return duration, nil
	}
	return nil, fmt.Errorf("operand %d, %s, is neither a quantity nor a duration", position, quoted(text))
}

// parseQuantity refuses exponents that would take a computer's memory.
func parseQuantity(text string) (resource.Quantity, error) {
	if at := strings.LastIndexAny(text, "eE"); at >= 0 {
		exponent, err := strconv.Atoi(text[at+1:])
		if (err != nil && errors.Is(err, strconv.ErrRange)) || exponent > maxExponent || exponent < -maxExponent {
			return resource.Quantity{}, fmt.Errorf("the exponent of %s is out of range", quoted(text))
		}
	}
	return resource.ParseQuantity(text)
}

// asQuantity returns a number as the quantity that Kyverno makes of it. That a large
// power of ten is without its zeros can be seen in the places that a division keeps.
func asQuantity(number any) (resource.Quantity, error) {
	float, ok := fraction(number)
	if !ok {
		return resource.Quantity{}, errMismatch
	}
	text := strconv.FormatFloat(float, 'g', -1, 64)
	if exact, ok := number.(int64); ok {
		if back, ok := integer(float); !ok || back != exact {
			text = strconv.FormatInt(exact, 10)
		}
	}
	return parseQuantity(text)
}

// whole returns the value of a quantity as int64, or what is no integer when it has a
// fraction or is too large.
func whole(quantity resource.Quantity) any {
	rounded := new(inf.Dec).Round(quantity.AsDec(), 0, inf.RoundExact)
	if rounded != nil && rounded.UnscaledBig().IsInt64() {
		return rounded.UnscaledBig().Int64()
	}
	return math.NaN()
}

// remainder returns that of two whole numbers.
func remainder(left, right any) (int64, error) {
	dividend, ok := integer(left)
	if !ok {
		return 0, errFraction
	}
	divisor, ok := integer(right)
	if !ok {
		return 0, errFraction
	}
	if divisor == 0 {
		return 0, errZero
	}
	return dividend % divisor, nil
}

func quotient(dividend, divisor float64) (any, error) {
	if divisor == 0 {
		return nil, errZero
	}
	return finite(dividend / divisor)
}

// seconds returns the text of a duration.
func seconds(number float64) (any, error) {
	nanoseconds := number * float64(time.Second)
	// The comparison is false for what is not a number.
	inRange := nanoseconds >= -beyondInt64 && nanoseconds < beyondInt64
	if !inRange {
		return nil, errDuration
	}
	return time.Duration(nanoseconds).String(), nil
}

// length returns the text of a duration of nanoseconds.
func length(nanoseconds int64, ok bool) (any, error) {
	if !ok {
		return nil, errDuration
	}
	return time.Duration(nanoseconds).String(), nil
}

// onNumbers calculates with integers as long as the result is one, and with floats if not.
func onNumbers(
	left, right any, exact func(a, b int64) (int64, bool), inexact func(a, b float64) float64,
) (any, error) {
	if a, ok := left.(int64); ok {
		if b, ok := right.(int64); ok {
			if result, ok := exact(a, b); ok {
				return result, nil
			}
		}
	}
	a, leftOK := fraction(left)
	b, rightOK := fraction(right)
	if !leftOK || !rightOK {
		return nil, errMismatch
	}
	return finite(inexact(a, b))
}

func addIntegers(a, b int64) (int64, bool) {
	total := a + b
	return total, (total > a) == (b > 0)
}

func subtractIntegers(a, b int64) (int64, bool) {
	rest := a - b
	return rest, (rest < a) == (b > 0)
}

func multiplyIntegers(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	product := a * b
	// The first of these is the one quotient that overflows.
	overflows := a == -1 && b == math.MinInt64 || product/a != b
	return product, !overflows
}

// divideIntegers divides what can be divided without remainder.
func divideIntegers(a, b int64) (int64, bool) {
	if b == 0 || a%b != 0 || (a == math.MinInt64 && b == -1) {
		return 0, false
	}
	return a / b, true
}
