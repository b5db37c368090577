// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// call is a function call whose arguments are bounded, the target first.
type call struct {
	// overload is the ID of the overload if the checker left only one. The planner of
	// cel-go knows no overload otherwise (resolveFunction), and the call costs 1 unless
	// the function has a price under every overload.
	overload string
	args     []value
	expr     celast.CallExpr
}

// call bounds calls and the operators, which are calls too.
func (w *walk) call(expr celast.Expr) value {
	args := expr.AsCall().Args()
	c := call{overload: onlyOverload(w.current.checked, expr), expr: expr.AsCall()}
	switch name := c.expr.FunctionName(); name {
	case operators.Conditional:
		return w.conditional(args[0], args[1], args[2])
	case operators.Index, operators.OptIndex, operators.OptSelect:
		// The index of an attribute that is none itself is one more attribute.
		v := w.operand(args[0])
		w.node(args[1])
		w.charge(common.SelectAndIdentCost)
		if field, ok := c.literalText(1); ok {
			return w.field(v, field)
		}
		return v.element()
	default:
		f, known := functions[name]
		if !known {
			return w.giveUp()
		}
		return w.known(f, &c)
	}
}

// known bounds a call of a function of the table.
func (w *walk) known(f function, c *call) value {
	base := len(w.arguments)
	if c.expr.IsMemberFunction() {
		v := w.node(c.expr.Target())
		w.arguments = append(w.arguments, v)
	}
	for _, argument := range c.expr.Args() {
		v := w.node(argument)
		w.arguments = append(w.arguments, v)
	}
	c.args = w.arguments[base:]
	w.charge(f.price(c))
	result := scalar()
	if f.result != nil {
		result = f.result(c)
	}
	w.arguments = w.arguments[:base]
	return result
}

// conditional costs what its condition and the dearer branch cost.
func (w *walk) conditional(condition, truthy, falsy celast.Expr) value {
	w.node(condition)
	before := w.cost
	v := w.node(truthy)
	afterTruthy := w.cost
	w.cost = before
	v = v.or(w.node(falsy))
	w.cost = max(w.cost, afterTruthy)
	return v
}

// argument returns the i-th argument, the target being the first one, or nil.
func (c *call) argument(i int) celast.Expr {
	if c.expr.IsMemberFunction() {
		if i == 0 {
			return c.expr.Target()
		}
		i--
	}
	if i >= len(c.expr.Args()) {
		return nil
	}
	return c.expr.Args()[i]
}

// literalText returns the i-th argument if it is written as a string.
func (c *call) literalText(i int) (string, bool) {
	argument := c.argument(i)
	if argument == nil || argument.Kind() != celast.LiteralKind {
		return "", false
	}
	s, ok := argument.AsLiteral().(types.String)
	return string(s), ok
}

// literalCount returns the i-th argument if it is written as a number that is not
// negative.
func (c *call) literalCount(i int) (uint64, bool) {
	argument := c.argument(i)
	if argument == nil || argument.Kind() != celast.LiteralKind {
		return 0, false
	}
	n, ok := argument.AsLiteral().(types.Int)
	return uint64(max(n, 0)), ok && n >= 0
}

// arg bounds the i-th argument. One that is missing has no size.
func (c *call) arg(i int) value {
	if i >= len(c.args) {
		return scalar()
	}
	return c.args[i]
}

// onlyOverload returns the overload of a call if the checker left only one, or "".
func onlyOverload(checked *celast.AST, expr celast.Expr) string {
	if reference, found := checked.ReferenceMap()[expr.ID()]; found && len(reference.OverloadIDs) == 1 {
		return reference.OverloadIDs[0]
	}
	return ""
}
