// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// scalar is a pattern that is neither a list nor an object. matches is Validate of
// Kyverno's pkg/engine/pattern.
type scalar interface {
	matches(value any) bool
}

// leaf is a scalar in its place. All elements of a list have to match it.
type leaf struct{ scalar scalar }

func (l leaf) match(value any) outcome {
	list, ok := value.([]any)
	if ok && all(l.scalar, list) || !ok && l.scalar.matches(value) {
		return holds
	}
	return fails
}

func all(pattern scalar, list []any) bool {
	for _, element := range list {
		if !pattern.matches(element) {
			return false
		}
	}
	return true
}

func (c *compiler) scalar(pattern any) (scalar, error) {
	switch typed := pattern.(type) {
	case nil:
		return null{}, nil
	case bool:
		return boolean(typed), nil
	case int64:
		return number{whole: typed, isWhole: true, value: float64(typed)}, nil
	case float64:
		return number{value: typed}, nil
	case string:
		return c.text(typed)
	}
	return nil, fmt.Errorf("%T: %w", pattern, errNotJSON)
}

// null matches what is nothing: null, what is not there, 0, false and the empty text.
type null struct{}

func (null) matches(value any) bool {
	switch typed := value.(type) {
	case nil:
		return true
	case bool:
		return !typed
	case int64:
		return typed == 0
	case float64:
		return typed == 0
	case string:
		return typed == ""
	}
	return false
}

type boolean bool

func (b boolean) matches(value any) bool {
	typed, ok := value.(bool)
	return ok && typed == bool(b)
}

// number matches numbers, and texts of numbers, by their values.
type number struct {
	whole   int64
	isWhole bool
	value   float64
}

func (n number) matches(value any) bool {
	switch typed := value.(type) {
	case int64:
		if n.isWhole {
			return typed == n.whole
		}
		return float64(typed) == n.value
	case float64:
		return typed == n.value
	case string:
		if !maybeNumber(typed) {
			return false
		}
		parsed, err := strconv.ParseFloat(typed, 64)
		return err == nil && parsed == n.value
	}
	return false
}

// maybeNumber says whether a text begins like a number, as those of durations and
// quantities do too. Other texts are not worth the error that parsing them makes.
func maybeNumber(text string) bool {
	if text != "" && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	if text != "" && text[0] == '.' {
		text = text[1:]
	}
	return text != "" && text[0] >= '0' && text[0] <= '9'
}

// numberSize is how long the text of a number can be.
const numberSize = 32

// appendFloat appends a number as encoding/json writes it.
func appendFloat(buffer []byte, value float64) []byte {
	size := math.Abs(value)
	if size == 0 || size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(buffer, value, 'f', -1, 64)
	}
	buffer = strconv.AppendFloat(buffer, value, 'e', -1, 64)
	if end := len(buffer) - 1; bytes.HasSuffix(buffer[:end], []byte("e-0")) {
		buffer[end-1] = buffer[end]
		buffer = buffer[:end]
	}
	return buffer
}

// scalarText returns a scalar as MatchText reads it, if it is no text itself.
func scalarText(pattern any) string {
	switch typed := pattern.(type) {
	case bool:
		return strconv.FormatBool(typed)
	case int64:
		return strconv.FormatInt(typed, 10)
	case float64:
		return string(appendFloat(nil, typed))
	}
	return "null"
}
