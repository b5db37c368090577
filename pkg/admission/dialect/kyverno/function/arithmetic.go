// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"math"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

var (
	errMismatch = errors.New("the operands are of types that do not go together")
	errZero     = errors.New("the divisor is zero")
	errFraction = errors.New("the operands are not both integers")
	errDuration = errors.New("the result is too long for a duration")
)

// operation works on two operands: int64, float64, resource.Quantity or time.Duration.
// What it returns is a value of JSON: quantities and durations are texts.
type operation func(left, right any) (any, error)

// arithmetic returns the functions that calculate with numbers, quantities and durations.
func arithmetic() []jmespath.Function {
	return []jmespath.Function{
		binary("add", add),
		binary("subtract", subtract),
		binary("multiply", multiply),
		binary("divide", divide),
		binary("modulo", modulo),
		{Name: "sum", Params: params(jmespath.Array), Call: sum},
		{Name: "round", Params: params(jmespath.Number, jmespath.Number), Call: round},
	}
}

// binary returns a function of two operands.
func binary(name string, operation operation) jmespath.Function {
	return jmespath.Function{
		Name:   name,
		Params: params(jmespath.Any, jmespath.Any),
		Call: func(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
			if len(args) != 2 {
				return nil, errMismatch
			}
			return apply(ctx, run, operation, args[0], args[1])
		},
	}
}

// apply parses two operands and calculates.
func apply(ctx context.Context, run *jmespath.Run, operation operation, a, b any) (any, error) {
	if err := run.Spend(ctx, 10, 0); err != nil {
		return nil, err
	}
	left, err := operand(a, 1)
	if err != nil {
		return nil, err
	}
	right, err := operand(b, 2)
	if err != nil {
		return nil, err
	}
	result, err := operation(left, right)
	if err != nil {
		return nil, err
	}
	if text, ok := result.(string); ok {
		return made(ctx, run, text)
	}
	return result, nil
}

// sum adds up a list from the left. The only element of a list is its sum, whatever it
// is, as in Kyverno.
func sum(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
	list, err := argument[[]any](args, 0)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("the list is empty")
	}
	result := list[0]
	for _, element := range list[1:] {
		if result, err = apply(ctx, run, add, result, element); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// round rounds a number to a number of decimal places, halves away from zero.
func round(_ context.Context, _ *jmespath.Run, args []any) (any, error) {
	if len(args) != 2 {
		return nil, errMismatch
	}
	places, ok := integer(args[1])
	if !ok {
		return nil, errors.New("the number of decimal places is not an integer")
	}
	if places < 0 {
		return nil, errors.New("the number of decimal places is negative")
	}
	number, ok := args[0].(float64)
	if !ok {
		return args[0], nil
	}
	shift := math.Pow(10, float64(places))
	return finite(math.Round(number*shift) / shift)
}

func add(left, right any) (any, error) {
	switch left := left.(type) {
	case resource.Quantity:
		if right, ok := right.(resource.Quantity); ok {
			left.Add(right)
			return left.String(), nil
		}
	case time.Duration:
		if right, ok := right.(time.Duration); ok {
			total, ok := addIntegers(int64(left), int64(right))
			return length(total, ok)
		}
	default:
		return onNumbers(left, right, addIntegers, func(a, b float64) float64 { return a + b })
	}
	return nil, errMismatch
}

func subtract(left, right any) (any, error) {
	switch left := left.(type) {
	case resource.Quantity:
		if right, ok := right.(resource.Quantity); ok {
			left.Sub(right)
			return left.String(), nil
		}
	case time.Duration:
		if right, ok := right.(time.Duration); ok {
			rest, ok := subtractIntegers(int64(left), int64(right))
			return length(rest, ok)
		}
	default:
		return onNumbers(left, right, subtractIntegers, func(a, b float64) float64 { return a - b })
	}
	return nil, errMismatch
}

// multiply multiplies two numbers, or a number with a quantity or a duration.
func multiply(left, right any) (any, error) {
	if _, ok := fraction(left); ok {
		if _, ok := fraction(right); ok {
			return onNumbers(left, right, multiplyIntegers, func(a, b float64) float64 { return a * b })
		}
		left, right = right, left
	}
	factor, ok := fraction(right)
	if !ok {
		return nil, errMismatch
	}
	switch left := left.(type) {
	case resource.Quantity:
		by, err := asQuantity(right)
		if err != nil {
			return nil, err
		}
		product := new(inf.Dec).Mul(left.AsDec(), by.AsDec())
		return resource.NewDecimalQuantity(*product, left.Format).String(), nil
	case time.Duration:
		return seconds(left.Seconds() * factor)
	default:
		return nil, errMismatch
	}
}

// divide divides two of the same type, which makes a number, or a quantity or duration by
// a number.
func divide(left, right any) (any, error) {
	divisor, byNumber := fraction(right)
	if byNumber && divisor == 0 {
		return nil, errZero
	}
	switch left := left.(type) {
	case resource.Quantity:
		if right, ok := right.(resource.Quantity); ok {
			return quotient(left.AsApproximateFloat64(), right.AsApproximateFloat64())
		}
		if byNumber {
			return divideQuantity(left, right)
		}
	case time.Duration:
		if right, ok := right.(time.Duration); ok {
			return quotient(left.Seconds(), right.Seconds())
		}
		if byNumber {
			return seconds(left.Seconds() / divisor)
		}
	default:
		return onNumbers(left, right, divideIntegers, func(a, b float64) float64 { return a / b })
	}
	return nil, errMismatch
}

// divideQuantity keeps as many decimal places as the operand that has more of them, and
// cuts off the rest, as Kyverno does.
func divideQuantity(quantity resource.Quantity, number any) (any, error) {
	by, err := asQuantity(number)
	if err != nil {
		return nil, err
	}
	dividend, divisor := quantity.AsDec(), by.AsDec()
	if divisor.Sign() == 0 {
		return nil, errZero
	}
	result := new(inf.Dec).QuoRound(dividend, divisor, max(dividend.Scale(), divisor.Scale()), inf.RoundDown)
	return resource.NewDecimalQuantity(*result, quantity.Format).String(), nil
}

// modulo returns the remainder of two of the same type, with the sign of the first.
func modulo(left, right any) (any, error) {
	switch left := left.(type) {
	case resource.Quantity:
		if right, ok := right.(resource.Quantity); ok {
			rest, err := remainder(whole(left), whole(right))
			if err != nil {
				return nil, err
			}
			return resource.NewQuantity(rest, left.Format).String(), nil
		}
	case time.Duration:
		if right, ok := right.(time.Duration); ok {
			rest, err := remainder(int64(left), int64(right))
			return time.Duration(rest).String(), err
		}
	default:
		if _, ok := fraction(right); ok {
			return remainder(left, right)
		}
	}
	return nil, errMismatch
}
