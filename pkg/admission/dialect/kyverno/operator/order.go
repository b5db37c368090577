// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"strconv"
	"time"

	"github.com/blang/semver/v4"
)

// order is what an operator wants of the order of two operands.
type order uint8

const (
	none order = iota
	greater
	greaterOrEqual
	less
	lessOrEqual
)

func (o Operator) order() order {
	switch o { //nolint:exhaustive // the others ask for none
	case GreaterThan, DurationGreaterThan:
		return greater
	case GreaterThanOrEquals, DurationGreaterThanOrEquals:
		return greaterOrEqual
	case LessThan, DurationLessThan:
		return less
	case LessThanOrEquals, DurationLessThanOrEquals:
		return lessOrEqual
	}
	return none
}

// String returns the name of the operator that wants the order.
func (o order) String() string {
	switch o {
	case greater:
		return "GreaterThan"
	case greaterOrEqual:
		return "GreaterThanOrEquals"
	case less:
		return "LessThan"
	case lessOrEqual:
		return "LessThanOrEquals"
	case none:
	}
	return ""
}

// holds says whether the order is the one of operands that compare as cmp.Compare says.
func (o order) holds(compared int) bool {
	switch o {
	case greater:
		return compared > 0
	case greaterOrEqual:
		return compared >= 0
	case less:
		return compared < 0
	case lessOrEqual:
		return compared <= 0
	case none:
	}
	return false
}

// numbers is holds for numbers, of which NaN has no order.
func (o order) numbers(key, value float64) bool {
	return key == key && value == value && o.holds(cmp.Compare(key, value)) //nolint:gocritic // NaN
}

// ordered compares durations, quantities, numbers and versions, in this order, as
// Kyverno's NumericOperatorHandler does.
func (c *comparison) ordered(want order, key, value any) bool {
	if number, ok := numberOf(key); ok {
		return ofNumber(want, number, value)
	}
	text, ok := key.(string)
	if !ok {
		return false
	}
	if left, right, ok := durations(text, value); ok {
		return want.numbers(left.Seconds(), right.Seconds())
	}
	other, isText := value.(string)
	if isText {
		left, ok := quantity(text)
		right, alsoOK := quantity(other)
		if ok && alsoOK {
			return want.holds(left.Cmp(right))
		}
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		return ofNumber(want, number, value)
	}
	left, err := semver.Parse(text)
	if err != nil || !isText {
		return false
	}
	right, err := semver.Parse(other)
	return err == nil && want.holds(left.Compare(right))
}

// ofNumber compares a number with a number or a text of one, or with a duration, in
// seconds.
func ofNumber(want order, key float64, value any) bool {
	if number, ok := numberOf(value); ok {
		return want.numbers(key, number)
	}
	text, ok := value.(string)
	if !ok {
		return false
	}
	if left, right, ok := durations(key, text); ok {
		return want.numbers(left.Seconds(), right.Seconds())
	}
	number, err := strconv.ParseFloat(text, 64)
	return err == nil && want.numbers(key, number)
}

// durationsOrdered compares durations, of which a number is one in seconds, as
// Kyverno's DurationOperatorHandler does.
func (c *comparison) durationsOrdered(want order, key, value any) bool {
	left, ok := durationOf(key)
	right, alsoOK := durationOf(value)
	return ok && alsoOK && want.holds(cmp.Compare(left, right))
}

func durationOf(operand any) (time.Duration, bool) {
	if number, ok := numberOf(operand); ok {
		return seconds(number), true
	}
	text, ok := operand.(string)
	if !ok {
		return 0, false
	}
	return duration(text)
}
