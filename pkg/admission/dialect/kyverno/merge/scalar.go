// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Text returns a scalar as it stands in JSON, without quotes: the keys of elements are
// compared by it. It is "" for all that is no scalar.
func Text(value any) string { return text(value) }

// text returns a scalar as it stands in JSON, without quotes. It is by their texts that
// keys are compared, as in kyaml, so the port 80 is the port "80". It is "" for all that
// is no scalar.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case nil, map[string]any, []any, *Elements:
		return ""
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(encoded)
}

// overwrite returns what becomes of a scalar that another one overwrites. As with kyaml,
// what was a string stays one: {a: "1"} with {a: 2} is {a: "2"}.
func overwrite(old, value any) outcome {
	if was, ok := old.(string); ok {
		now, ok := value.(string)
		if !ok {
			now = text(value)
		}
		if now == was {
			return outcome{value: old}
		}
		if ok {
			return outcome{value: value, changed: true}
		}
		return outcome{value: now, changed: true}
	}
	if sameScalar(old, value) {
		return outcome{value: old}
	}
	return outcome{value: value, changed: true}
}

// sameScalar compares scalars. Numbers are the same when their values are.
func sameScalar(a, b any) bool {
	switch a := a.(type) {
	case int64:
		switch b := b.(type) {
		case int64:
			return a == b
		case float64:
			return sameNumber(a, b)
		}
	case float64:
		switch b := b.(type) {
		case float64:
			return a == b
		case int64:
			return sameNumber(b, a)
		}
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	}
	return false
}

// sameNumber compares without a rounding that would make different numbers the same.
func sameNumber(i int64, f float64) bool {
	const limit = 1 << 53
	return -limit <= i && i <= limit && float64(i) == f
}

// name says of what type a value is.
func name(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any, *Elements:
		return "a list"
	default:
		return "a scalar"
	}
}
