// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package function has the functions that Kyverno adds to those of JMESPath, with the
// results of its pkg/engine/jmespath. They depend on their arguments and on what the
// Run of a request says, and on nothing else: they know neither the clock nor the
// network, and chance is that of the request. Function sum shadows the one of the
// specification. The package does not evaluate expressions and does not know where
// arguments come from.
//
// Numbers are int64 where the arguments are and nothing forces a fraction. An integer of
// any size keeps its digits, where Kyverno, which only has float64, loses some.
package function

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// What things cost, roughly: a step is the time in which the evaluation of an
// expression visits a node, and bytes are those that a value takes in memory.
const (
	charactersPerStep = 64
	bytesPerItem      = 32
	bytesPerObject    = 128
)

// All returns the functions, sorted by name. They are safe for concurrent use.
func All() []jmespath.Function {
	all := slices.Concat(texts(), patterns(), collections(), arithmetic(), encodings(),
		documents(), references(), times(), []jmespath.Function{random()})
	slices.SortFunc(all, func(a, b jmespath.Function) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// call is the work of a function whose arguments are all strings.
type call func(ctx context.Context, run *jmespath.Run, texts []string) (any, error)

// ofTexts returns a function of a number of strings. It pays for reading them; call
// pays for what it makes.
func ofTexts(name string, count int, call call) jmespath.Function {
	return jmespath.Function{
		Name:   name,
		Params: slices.Repeat([]jmespath.Param{{Types: jmespath.String}}, count),
		Call: func(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
			texts := make([]string, count)
			for i := range texts {
				var err error
				if texts[i], err = argument[string](args, i); err != nil {
					return nil, err
				}
			}
			if err := read(ctx, run, texts...); err != nil {
				return nil, err
			}
			return call(ctx, run, texts)
		},
	}
}

// argument returns one of the arguments. That it is of type T has been checked by the
// caller of the function as far as Params say so.
func argument[T any](args []any, index int) (T, error) {
	if index < len(args) {
		if value, ok := args[index].(T); ok {
			return value, nil
		}
	}
	var none T
	return none, fmt.Errorf("argument %d is missing or not %s", index+1, typeName(none))
}

// typeName says what a value is in the words of policies.
func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a value"
	}
}

// read pays for reading texts from end to end.
func read(ctx context.Context, run *jmespath.Run, texts ...string) error {
	steps := 1
	for _, text := range texts {
		steps += len(text) / charactersPerStep
	}
	return run.Spend(ctx, steps, 0)
}

// made pays for a text that is no longer than what it is made of, or little.
func made(ctx context.Context, run *jmespath.Run, text string) (any, error) {
	if err := run.Spend(ctx, 0, len(text)); err != nil {
		return nil, err
	}
	return text, nil
}

// params returns parameters of the given types.
func params(types ...jmespath.Type) []jmespath.Param {
	all := make([]jmespath.Param, len(types))
	for i, t := range types {
		all[i].Types = t
	}
	return all
}
