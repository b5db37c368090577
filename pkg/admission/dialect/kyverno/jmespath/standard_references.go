// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

func referenceFunctions() []Function {
	return []Function{
		{Name: "map", Params: takes(ExpressionReference, Array), Call: mapItems},
		{Name: "sort_by", Params: takes(Array, ExpressionReference), Call: sortBy},
		{Name: "max_by", Params: takes(Array, ExpressionReference), Call: extremeBy(1)},
		{Name: "min_by", Params: takes(Array, ExpressionReference), Call: extremeBy(-1)},
	}
}

// over evaluates a reference over an item; a missing field is null.
func over(ctx context.Context, run *Run, arg, item any) (any, error) {
	r, ok := arg.(*Reference)
	if !ok {
		return nil, errors.New("no expression is given")
	}
	return orNull(ctx, run, r.node, item)
}

func mapItems(ctx context.Context, run *Run, args []any) (any, error) {
	list := items(args[1])
	if err := run.take(ctx, 1, listBytes(len(list))); err != nil {
		return nil, err
	}
	mapped := make([]any, len(list))
	for i, item := range list {
		value, err := over(ctx, run, args[0], item)
		if err != nil {
			return nil, err
		}
		if err := finite(value); err != nil {
			return nil, err
		}
		mapped[i] = value
	}
	return mapped, nil
}

// keyed is an item with what it is compared by.
type keyed struct{ key, item any }

// keyItems evaluates the reference over all items. All keys must be numbers, or all
// strings.
func keyItems(ctx context.Context, run *Run, list []any, reference any) ([]keyed, error) {
	if err := run.take(ctx, sortSteps(len(list)), 2*listBytes(len(list))); err != nil {
		return nil, err
	}
	pairs := make([]keyed, len(list))
	for i, item := range list {
		key, err := over(ctx, run, reference, item)
		if err != nil {
			return nil, err
		}
		pairs[i] = keyed{key: key, item: item}
		if i == 0 {
			if !isNumber(key) && !isString(key) {
				return nil, fmt.Errorf("the expression is %s for item 0; it must be a number or a string", describe(key))
			}
			continue
		}
		if isNumber(key) != isNumber(pairs[0].key) || isString(key) != isString(pairs[0].key) {
			return nil, fmt.Errorf("the expression is %s for item %d and %s for item 0; it must be numbers only, or strings only",
				describe(key), i, describe(pairs[0].key))
		}
	}
	return pairs, nil
}

// sortBy returns a list in the order of what the reference is for its items. A list of
// one item is not looked at, as in the library.
func sortBy(ctx context.Context, run *Run, args []any) (any, error) {
	list := items(args[0])
	if len(list) < 2 {
		return args[0], nil
	}
	pairs, err := keyItems(ctx, run, list, args[1])
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(pairs, func(a, b keyed) int { return compare(a.key, b.key) })
	if err := run.take(ctx, 1, listBytes(len(list))); err != nil {
		return nil, err
	}
	ordered := make([]any, len(pairs))
	for i, pair := range pairs {
		ordered[i] = pair.item
	}
	return ordered, nil
}

// extremeBy returns the first item for which no other one exceeds the reference in the
// direction of sign.
func extremeBy(sign int) func(context.Context, *Run, []any) (any, error) {
	return func(ctx context.Context, run *Run, args []any) (any, error) {
		list := items(args[0])
		if len(list) < 2 {
			return at(args[0], 0), nil
		}
		pairs, err := keyItems(ctx, run, list, args[1])
		if err != nil {
			return nil, err
		}
		best := pairs[0]
		for _, pair := range pairs[1:] {
			if compare(pair.key, best.key)*sign > 0 {
				best = pair
			}
		}
		return best.item, nil
	}
}
