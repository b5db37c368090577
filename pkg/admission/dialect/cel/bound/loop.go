// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/parser"
)

// loop is a comprehension that is being walked.
type loop struct {
	expr celast.ComprehensionExpr
	// element bounds the element, key and value of each round.
	element     value
	accumulator value
	// rounds bounds the rounds of one evaluation.
	rounds uint64
	// elements bounds the values in all elements of all evaluations together.
	elements uint64
}

// local bounds the variable that the innermost loop around declares as name.
func (w *walk) local(name string) (value, bool) {
	for i := len(w.loops) - 1; i >= 0; i-- {
		l := &w.loops[i]
		switch name {
		case l.expr.AccuVar():
			return l.accumulator, true
		case l.expr.IterVar(), l.expr.IterVar2():
			return l.element, true
		}
	}
	return value{}, false
}

// comprehension bounds a macro that the parser expanded. evalFold of cel-go's
// interpreter costs nothing itself: the range, the initial value and the result are
// evaluated once, the condition and the step at most once in each round.
func (w *walk) comprehension(expr celast.ComprehensionExpr) value {
	if isEmptyList(expr.IterRange()) {
		return w.binding(expr)
	}
	if expr.AccuVar() != parser.HiddenAccumulatorName {
		return w.giveUp()
	}
	over := w.node(expr.IterRange())
	initial := w.node(expr.AccuInit())
	l := loop{
		expr: expr, element: over.element(), accumulator: initial,
		rounds: over.length, elements: w.elements(over),
	}
	l.element.loop = len(w.loops) + 1
	w.loops = append(w.loops, l)
	once := w.rounds
	w.rounds = min(times(once, l.rounds), l.elements)
	w.node(expr.LoopCondition())
	first := w.node(expr.LoopStep())
	w.rounds = once

	// The result does not see the elements.
	l.element, l.rounds = anything(), 1
	l.accumulator = anything()
	if accumulates(expr.LoopStep()) {
		l.accumulator = initial.or(first.grown(over.length))
	}
	w.loops[len(w.loops)-1] = l
	result := w.node(expr.Result())
	return w.leave(result)
}

// binding bounds optMap and optFlatMap, which the parser expands to a loop without
// rounds whose result reads the initial value under a name.
func (w *walk) binding(expr celast.ComprehensionExpr) value {
	if !safeInBinding(w.current.checked, expr.Result()) {
		return w.giveUp()
	}
	w.node(expr.IterRange())
	initial := w.node(expr.AccuInit())
	w.loops = append(w.loops, loop{expr: expr, element: anything(), accumulator: initial, rounds: 1})
	return w.leave(w.node(expr.Result()))
}

// leave ends the innermost loop, whose elements result is no longer a part of.
func (w *walk) leave(result value) value {
	w.loops = w.loops[:len(w.loops)-1]
	if result.loop > len(w.loops) {
		result.loop = 0
	}
	return result
}

// elements bounds the number of values in all elements of over, over all evaluations
// of the current node. The elements of a loop are disjoint; so the parts of them
// that an inner loop ranges over are, in all rounds together, no larger than the
// whole, and that again once for each round of the loops in between.
func (w *walk) elements(over value) uint64 {
	all := times(w.rounds, over.values)
	if over.loop == 0 {
		return all
	}
	parts := w.loops[over.loop-1].elements
	for _, between := range w.loops[over.loop:] {
		parts = times(parts, between.rounds)
	}
	return min(all, parts)
}

// accumulates tells whether step makes an accumulator larger in each round only by
// something that does not depend on it: the steps of the macros of cel-go.
func accumulates(step celast.Expr) bool {
	switch step.Kind() {
	case celast.IdentKind:
		return step.AsIdent() == parser.HiddenAccumulatorName
	case celast.CallKind:
	default:
		return false
	}
	args := step.AsCall().Args()
	switch step.AsCall().FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr:
		return true
	case operators.Conditional:
		return accumulates(args[1]) && accumulates(args[2])
	case operators.Add:
		added := args[1].Kind() == celast.ListKind || args[1].Kind() == celast.LiteralKind
		return isAccumulator(args[0]) && added
	case mapInsert:
		return isAccumulator(args[0])
	}
	return false
}

func isAccumulator(expr celast.Expr) bool {
	return expr.Kind() == celast.IdentKind && expr.AsIdent() == parser.HiddenAccumulatorName
}

func isEmptyList(expr celast.Expr) bool {
	return expr.Kind() == celast.ListKind && expr.AsList().Size() == 0
}

// safeInBinding tells whether the value that body reads under a name cannot become
// larger. cel-go hands out an empty list or map as a mutable one there
// (folder.ResolveName), which + then changes in place: it must neither be added to
// nor be kept in another value, to be added to elsewhere. The result of a loop is
// never mutable.
func safeInBinding(checked *celast.AST, body celast.Expr) bool {
	switch body.Kind() {
	case celast.ListKind:
		if !onlyLiterals(body) {
			return false
		}
	case celast.MapKind, celast.StructKind:
		return false
	case celast.CallKind:
		if !safeCallInBinding(checked, body) {
			return false
		}
	case celast.ComprehensionKind, celast.IdentKind, celast.LiteralKind, celast.SelectKind, celast.UnspecifiedExprKind:
	}
	for child := range children(body) {
		if !safeInBinding(checked, child) {
			return false
		}
	}
	return true
}

func safeCallInBinding(checked *celast.AST, expr celast.Expr) bool {
	call := expr.AsCall()
	switch call.FunctionName() {
	case operators.Add:
		overload := onlyOverload(checked, expr)
		return overload != "" && overload != addList
	case "optional.of", "optional.ofNonZeroValue":
		return len(call.Args()) == 1 && call.Args()[0].Kind() == celast.ComprehensionKind
	case mapInsert:
		return false
	}
	return true
}

func onlyLiterals(list celast.Expr) bool {
	for element := range children(list) {
		if element.Kind() != celast.LiteralKind {
			return false
		}
	}
	return true
}
