// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"slices"
	"strings"
)

func listFunctions() []Function {
	return []Function{
		{Name: "contains", Params: takes(Array|String, Any), Call: contains},
		{Name: "sort", Params: takes(ArrayOfStrings | ArrayOfNumbers), Call: sorted},
		{Name: "keys", Params: takes(Object), Call: func(ctx context.Context, run *Run, args []any) (any, error) {
			return members(ctx, run, fields(args[0]), func(key string, _ any) any { return key })
		}},
		{Name: "values", Params: takes(Object), Call: func(ctx context.Context, run *Run, args []any) (any, error) {
			return members(ctx, run, fields(args[0]), func(_ string, value any) any { return value })
		}},
		{Name: "merge", Params: []Param{{Types: Object, Variadic: true}}, Call: merge},
	}
}

// compare orders two numbers or two strings.
func compare(a, b any) int {
	if s, ok := a.(string); ok {
		return cmp.Compare(s, text(b))
	}
	sign, _ := compareNumbers(a, b)
	return sign
}

// contains looks for a part of a text or for an item of a list. Lists and objects in a
// list cannot be looked for: the library panics there.
func contains(ctx context.Context, run *Run, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		part, ok := args[1].(string)
		return ok && strings.Contains(s, part), run.take(ctx, textSteps(len(s)), 0)
	}
	isList, isObject := Array.has(args[1]), Object.has(args[1])
	for _, item := range items(args[0]) {
		if isList && Array.has(item) || isObject && Object.has(item) {
			return nil, errors.New("a list or an object cannot be looked for in a list")
		}
		if same, err := equal(ctx, run, item, args[1], 0); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// sorted returns a list in order; what is equal keeps its own.
func sorted(ctx context.Context, run *Run, args []any) (any, error) {
	list := items(args[0])
	if err := run.take(ctx, sortSteps(len(list)), listBytes(len(list))); err != nil {
		return nil, err
	}
	ordered := make([]any, len(list))
	copy(ordered, list)
	slices.SortStableFunc(ordered, compare)
	return ordered, nil
}

// sortSteps is about the number of comparisons that n items need.
func sortSteps(n int) int { return n * bits.Len(uint(n)) }

func members(ctx context.Context, run *Run, object map[string]any, member func(string, any) any) (any, error) {
	keys, err := sortedKeys(ctx, run, object)
	if err != nil {
		return nil, err
	}
	list := make([]any, len(keys))
	for i, key := range keys {
		list[i] = member(key, object[key])
	}
	return list, nil
}

// merge returns an object with the fields of all; of equal keys the last one counts.
func merge(ctx context.Context, run *Run, args []any) (any, error) {
	merged := map[string]any{}
	for _, arg := range args {
		object := fields(arg)
		if err := run.take(ctx, len(object), objectBytes(len(object))); err != nil {
			return nil, err
		}
		for key, value := range object {
			merged[key] = value
		}
	}
	return merged, nil
}
