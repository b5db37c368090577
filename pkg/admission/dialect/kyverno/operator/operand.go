// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxDepth is how deep lists and objects may lie in one another.
	maxDepth = 1000
	// maxQuantity is how long the text of a quantity may be, and maxExponent how large
	// its exponent: ParseQuantity and Cmp take time that grows with the number itself.
	maxQuantity = 64
	maxExponent = 100
)

var errTooDeep = errors.New("lists and objects lie too deep in one another")

func numberOf(operand any) (float64, bool) {
	switch typed := operand.(type) {
	case int64:
		return float64(typed), true
	case float64:
		return typed, true
	}
	return 0, false
}

// durations returns the durations of key and value if one of them is the text of a
// duration and the other one as well, or a number of seconds. "0" alone is no duration.
func durations(key, value any) (left, right time.Duration, ok bool) {
	left, leftOK := explicitDuration(key)
	right, rightOK := explicitDuration(value)
	if !leftOK && !rightOK {
		return 0, 0, false
	}
	if !leftOK {
		number, ok := numberOf(key)
		return seconds(number), right, ok
	}
	if !rightOK {
		number, ok := numberOf(value)
		return left, seconds(number), ok
	}
	return left, right, true
}

func explicitDuration(operand any) (time.Duration, bool) {
	text, ok := operand.(string)
	if !ok || text == "0" {
		return 0, false
	}
	return duration(text)
}

// duration returns the duration of a text. Most texts begin like none: they are not
// worth the error that ParseDuration makes.
func duration(text string) (time.Duration, bool) {
	if text == "" || strings.IndexByte("+-.0123456789", text[0]) < 0 {
		return 0, false
	}
	parsed, err := time.ParseDuration(text)
	return parsed, err == nil
}

// seconds returns whole seconds. What no duration can hold becomes the longest one.
func seconds(number float64) time.Duration {
	const longest = float64(math.MaxInt64 / int64(time.Second))
	switch {
	case number >= longest:
		return math.MaxInt64
	case number <= -longest:
		return math.MinInt64
	}
	return time.Duration(number) * time.Second
}

// quantity returns the quantity of a text. One that would take long to compare is none.
func quantity(text string) (resource.Quantity, bool) {
	if len(text) > maxQuantity {
		return resource.Quantity{}, false
	}
	if e := strings.LastIndexAny(text, "eE"); e >= 0 {
		exponent, err := strconv.Atoi(text[e+1:])
		if errors.Is(err, strconv.ErrRange) || exponent > maxExponent || exponent < -maxExponent {
			return resource.Quantity{}, false
		}
	}
	parsed, err := resource.ParseQuantity(text)
	return parsed, err == nil
}

// textOf returns an operand as fmt.Sprint writes it once all numbers are float64.
func (c *comparison) textOf(operand any) (string, error) {
	if text, ok := operand.(string); ok {
		return text, nil
	}
	var text strings.Builder
	if err := write(&text, operand, maxDepth); err != nil {
		return "", err
	}
	return text.String(), c.run.Spend(c.ctx, 1+text.Len()/charactersPerStep, text.Len())
}

func write(text *strings.Builder, operand any, depth int) error {
	if depth == 0 {
		return errTooDeep
	}
	switch typed := operand.(type) {
	case nil:
		text.WriteString("<nil>")
	case string:
		text.WriteString(typed)
	case bool:
		text.WriteString(strconv.FormatBool(typed))
	case int64, float64:
		number, _ := numberOf(typed)
		text.WriteString(strconv.FormatFloat(number, 'g', -1, 64))
	case []any:
		text.WriteByte('[')
		for i, element := range typed {
			if i > 0 {
				text.WriteByte(' ')
			}
			if err := write(text, element, depth-1); err != nil {
				return err
			}
		}
		text.WriteByte(']')
	case map[string]any:
		text.WriteString("map[")
		for i, key := range slices.Sorted(maps.Keys(typed)) {
			if i > 0 {
				text.WriteByte(' ')
			}
			text.WriteString(key)
			text.WriteByte(':')
			if err := write(text, typed[key], depth-1); err != nil {
				return err
			}
		}
		text.WriteByte(']')
	default:
		return fmt.Errorf("a %T is no decoded JSON", operand)
	}
	return nil
}
