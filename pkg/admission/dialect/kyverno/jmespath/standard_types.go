// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"unicode/utf8"
)

func typeFunctions() []Function {
	return []Function{
		{Name: "type", Params: takes(Any), Call: pure(func(args []any) any { return typeName(args[0]) })},
		{Name: "length", Params: takes(String | Array | Object), Call: length},
		{Name: "not_null", Params: []Param{{Types: Any, Variadic: true}}, Call: pure(func(args []any) any {
			for _, arg := range args {
				if arg != nil {
					return arg
				}
			}
			return nil
		})},
		{Name: "to_array", Params: takes(Any), Call: func(ctx context.Context, run *Run, args []any) (any, error) {
			if Array.has(args[0]) {
				return args[0], nil
			}
			if err := finite(args[0]); err != nil {
				return nil, err
			}
			return []any{args[0]}, run.take(ctx, 0, listBytes(1))
		}},
	}
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

func length(ctx context.Context, run *Run, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return float64(utf8.RuneCountInString(v)), run.take(ctx, textSteps(len(v)), 0)
	case []any:
		return float64(len(v)), nil
	}
	return float64(len(fields(args[0]))), nil
}
