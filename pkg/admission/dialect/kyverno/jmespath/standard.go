// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"slices"
)

// standard returns the functions of the specification, as the library has them.
func standard() []Function {
	return slices.Concat(numberFunctions(), textFunctions(), listFunctions(), referenceFunctions(), typeFunctions())
}

func takes(types ...Type) []Param {
	params := make([]Param, len(types))
	for i, t := range types {
		params[i].Types = t
	}
	return params
}

// pure is the Call of a function that makes nothing which has a size.
func pure(call func(args []any) any) func(context.Context, *Run, []any) (any, error) {
	return func(_ context.Context, _ *Run, args []any) (any, error) { return call(args), nil }
}

// text, items and fields return an argument whose type has been checked.

func text(arg any) string {
	s, _ := arg.(string)
	return s
}

func items(arg any) []any {
	list, _ := arg.([]any)
	return list
}

func fields(arg any) map[string]any {
	object, _ := arg.(map[string]any)
	return object
}
