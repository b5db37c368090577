// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"math"
)

func numberFunctions() []Function {
	return []Function{
		{Name: "abs", Params: takes(Number), Call: pure(func(args []any) any {
			if i, ok := args[0].(int64); ok && i != math.MinInt64 {
				return max(i, -i)
			}
			return math.Abs(toFloat(args[0]))
		})},
		{Name: "ceil", Params: takes(Number), Call: pure(func(args []any) any { return rounded(args[0], math.Ceil) })},
		{Name: "floor", Params: takes(Number), Call: pure(func(args []any) any { return rounded(args[0], math.Floor) })},
		{Name: "sum", Params: takes(ArrayOfNumbers), Call: func(ctx context.Context, run *Run, args []any) (any, error) {
			return total(items(args[0])), run.take(ctx, len(items(args[0])), 0)
		}},
		{Name: "avg", Params: takes(ArrayOfNumbers), Call: func(ctx context.Context, run *Run, args []any) (any, error) {
			numbers := items(args[0])
			return total(numbers) / float64(len(numbers)), run.take(ctx, len(numbers), 0)
		}},
		{Name: "max", Params: takes(ArrayOfNumbers | ArrayOfStrings), Call: extreme(1)},
		{Name: "min", Params: takes(ArrayOfNumbers | ArrayOfStrings), Call: extreme(-1)},
	}
}

func rounded(number any, round func(float64) float64) any {
	if i, ok := number.(int64); ok {
		return i
	}
	return round(toFloat(number))
}

func total(numbers []any) float64 {
	sum := 0.0
	for _, n := range numbers {
		sum += toFloat(n)
	}
	return sum
}

// extreme returns the first item that no other one exceeds in the direction of sign.
func extreme(sign int) func(context.Context, *Run, []any) (any, error) {
	return func(ctx context.Context, run *Run, args []any) (any, error) {
		var best any
		for i, item := range items(args[0]) {
			if i == 0 || compare(item, best)*sign > 0 {
				best = item
			}
		}
		return best, run.take(ctx, len(items(args[0])), 0)
	}
}
