// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strconv"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/wildcard"
)

// equal compares operands as Kyverno's EqualHandler does: the value of a text is a
// pattern unless both are durations or quantities. Null equals nothing, not even null.
func (c *comparison) equal(key, value any) (bool, error) {
	switch typed := key.(type) {
	case bool:
		other, ok := value.(bool)
		return ok && typed == other, nil
	case int64, float64:
		return equalNumber(typed, value), nil
	case string:
		return c.equalText(typed, value)
	case map[string]any, []any:
		return c.same(key, value, maxDepth)
	}
	return false, nil
}

// equalNumber compares a number with a number, or with a text of one.
func equalNumber(key, value any) bool {
	if text, ok := value.(string); ok {
		number, _ := numberOf(key)
		parsed, err := strconv.ParseFloat(text, 64)
		return err == nil && parsed == number
	}
	return sameNumber(key, value)
}

// sameNumber compares whole numbers exactly when both are decoded as such.
func sameNumber(key, value any) bool {
	left, isWhole := key.(int64)
	right, alsoWhole := value.(int64)
	if isWhole && alsoWhole {
		return left == right
	}
	number, ok := numberOf(key)
	other, alsoOK := numberOf(value)
	return ok && alsoOK && number == other
}

func (c *comparison) equalText(key string, value any) (bool, error) {
	if left, right, ok := durations(key, value); ok {
		return left.Seconds() == right.Seconds(), nil
	}
	pattern, ok := value.(string)
	if !ok {
		return false, nil
	}
	if left, ok := quantity(key); ok {
		right, ok := quantity(pattern)
		return ok && left.Equal(right), nil
	}
	return c.match(pattern, key)
}

// match spends what the match takes.
func (c *comparison) match(pattern, text string) (bool, error) {
	if err := c.spend(wildcard.Steps(pattern, text)); err != nil {
		return false, err
	}
	return wildcard.Match(pattern, text), nil
}

// same compares lists and objects element by element. Numbers are the same when they
// have the same value, nothing is a pattern, and null is the same as null.
func (c *comparison) same(left, right any, depth int) (bool, error) {
	if depth == 0 {
		return false, errTooDeep
	}
	if err := c.spend(1); err != nil {
		return false, err
	}
	switch typed := left.(type) {
	case nil:
		return right == nil, nil
	case bool:
		other, ok := right.(bool)
		return ok && typed == other, nil
	case string:
		other, ok := right.(string)
		return ok && typed == other, nil
	case int64, float64:
		return sameNumber(left, right), nil
	case []any:
		other, ok := right.([]any)
		return c.sameLists(typed, other, ok, depth)
	case map[string]any:
		other, ok := right.(map[string]any)
		return c.sameObjects(typed, other, ok, depth)
	}
	return false, nil
}

func (c *comparison) sameLists(left, right []any, ok bool, depth int) (bool, error) {
	if !ok || len(left) != len(right) {
		return false, nil
	}
	for i := range left {
		if same, err := c.same(left[i], right[i], depth-1); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (c *comparison) sameObjects(left, right map[string]any, ok bool, depth int) (bool, error) {
	if !ok || len(left) != len(right) {
		return false, nil
	}
	for name := range left {
		if _, ok := right[name]; !ok {
			return false, nil
		}
	}
	// Every field is looked at, so that an error does not depend on their order.
	all := true
	for name, value := range left {
		same, err := c.same(value, right[name], depth-1)
		if err != nil {
			return false, err
		}
		all = all && same
	}
	return all, nil
}
