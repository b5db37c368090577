// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"iter"

	celast "github.com/google/cel-go/common/ast"
)

// children returns the expressions directly below expr.
func children(expr celast.Expr) iter.Seq[celast.Expr] {
	return func(yield func(celast.Expr) bool) {
		switch expr.Kind() {
		case celast.CallKind:
			eachArgument(expr.AsCall(), yield)
		case celast.SelectKind:
			yield(expr.AsSelect().Operand())
		case celast.ListKind:
			for _, element := range expr.AsList().Elements() {
				if !yield(element) {
					return
				}
			}
		case celast.MapKind:
			for _, entry := range expr.AsMap().Entries() {
				if !yield(entry.AsMapEntry().Key()) || !yield(entry.AsMapEntry().Value()) {
					return
				}
			}
		case celast.StructKind:
			for _, field := range expr.AsStruct().Fields() {
				if !yield(field.AsStructField().Value()) {
					return
				}
			}
		case celast.ComprehensionKind:
			eachPart(expr.AsComprehension(), yield)
		case celast.IdentKind, celast.LiteralKind, celast.UnspecifiedExprKind:
		}
	}
}

func eachArgument(call celast.CallExpr, yield func(celast.Expr) bool) {
	if call.IsMemberFunction() && !yield(call.Target()) {
		return
	}
	for _, argument := range call.Args() {
		if !yield(argument) {
			return
		}
	}
}

func eachPart(loop celast.ComprehensionExpr, yield func(celast.Expr) bool) {
	parts := [...]celast.Expr{loop.IterRange(), loop.AccuInit(), loop.LoopCondition(), loop.LoopStep(), loop.Result()}
	for _, part := range parts {
		if !yield(part) {
			return
		}
	}
}
