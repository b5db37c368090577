// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

func textFunctions() []Function {
	return []Function{
		{Name: "starts_with", Params: takes(String, String), Call: affix(strings.HasPrefix)},
		{Name: "ends_with", Params: takes(String, String), Call: affix(strings.HasSuffix)},
		{Name: "join", Params: takes(String, ArrayOfStrings), Call: join},
		{Name: "reverse", Params: takes(Array | String), Call: reverse},
		{Name: "to_string", Params: takes(Any), Call: toString},
		{Name: "to_number", Params: takes(Any), Call: pure(toNumber)},
	}
}

func affix(has func(whole, part string) bool) func(context.Context, *Run, []any) (any, error) {
	return func(ctx context.Context, run *Run, args []any) (any, error) {
		return has(text(args[0]), text(args[1])), run.take(ctx, textSteps(len(text(args[1]))), 0)
	}
}

func join(ctx context.Context, run *Run, args []any) (any, error) {
	separator, parts := text(args[0]), items(args[1])
	if len(parts) == 0 {
		return "", nil
	}
	// One after the other: a product could overflow.
	size := 0
	for _, part := range parts {
		length := len(separator) + len(text(part))
		if err := run.take(ctx, 1, length); err != nil {
			return nil, err
		}
		size += length
	}
	var joined strings.Builder
	joined.Grow(size)
	for i, part := range parts {
		if i > 0 {
			joined.WriteString(separator)
		}
		joined.WriteString(text(part))
	}
	return joined.String(), nil
}

func reverse(ctx context.Context, run *Run, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		// Characters take four times the place while they are turned round.
		if err := run.take(ctx, textSteps(len(s)), textBytes(5*len(s))); err != nil {
			return nil, err
		}
		runes := []rune(s)
		slices.Reverse(runes)
		return string(runes), nil
	}
	list := items(args[0])
	if err := run.take(ctx, len(list), listBytes(len(list))); err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	slices.Reverse(list)
	if list == nil {
		list = []any{}
	}
	return list, nil
}

// toString returns a string as it is, and JSON of anything else.
func toString(ctx context.Context, run *Run, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		return s, nil
	}
	before := run.Bytes
	if err := weigh(ctx, run, args[0], 0); err != nil {
		return nil, err
	}
	// The encoder has the text twice, in a buffer that grows by doubling.
	if err := run.take(ctx, 0, 2*(before-run.Bytes)); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(args[0])
	if err != nil {
		return nil, err
	}
	return string(encoded), run.take(ctx, 1, textBytes(len(encoded)))
}

// toNumber returns null for what is neither a number nor the text of one.
func toNumber(args []any) any {
	if isNumber(args[0]) {
		return args[0]
	}
	s, ok := args[0].(string)
	if !ok {
		return nil
	}
	number, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil
	}
	return number
}
