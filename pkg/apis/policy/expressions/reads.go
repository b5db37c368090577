// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// variablesName is the identifier under which expressions find the variables of
// their policy.
const variablesName = "variables"

// reads is what an expression may read of the variables of its policy.
type reads struct {
	names []string
	// all says that the expression uses the variables other than by a name that it
	// spells out, so that it may read any of them.
	all bool
	// shadows are the names that the comprehensions around the present place give
	// to their own variables.
	shadows []string
}

// readsOf returns what a parsed expression, whose macros are expanded, may read.
func readsOf(e ast.Expr) reads {
	var r reads
	r.walk(e)
	return r
}

// walk is recursive, which the parser's limit on nesting bounds.
func (r *reads) walk(e ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		r.all = r.all || r.isVariables(e)
	case ast.SelectKind:
		selection := e.AsSelect() // has() is one, too
		if r.isVariables(selection.Operand()) {
			r.name(selection.FieldName())
			return
		}
		r.walk(selection.Operand())
	case ast.CallKind:
		r.walkCall(e.AsCall())
	case ast.ListKind:
		r.walkEach(e.AsList().Elements())
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.walk(entry.AsMapEntry().Key())
			r.walk(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, entry := range e.AsStruct().Fields() {
			r.walk(entry.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		r.walkComprehension(e.AsComprehension())
	case ast.LiteralKind, ast.UnspecifiedExprKind:
	}
}

func (r *reads) walkEach(list []ast.Expr) {
	for _, e := range list {
		r.walk(e)
	}
}

func (r *reads) walkCall(call ast.CallExpr) {
	args := call.Args()
	if call.FunctionName() == operators.OptSelect && len(args) == 2 && r.isVariables(args[0]) && args[1].Kind() == ast.LiteralKind {
		if name, ok := args[1].AsLiteral().(types.String); ok {
			r.name(string(name))
			return
		}
	}
	if call.IsMemberFunction() {
		r.walk(call.Target())
	}
	r.walkEach(args)
}

// walkComprehension knows which parts see which of its own variables.
func (r *reads) walkComprehension(c ast.ComprehensionExpr) {
	r.walk(c.IterRange())
	r.walk(c.AccuInit())
	outside := len(r.shadows)
	r.shadows = append(r.shadows, c.AccuVar())
	r.walk(c.Result())
	r.shadows = append(r.shadows, c.IterVar())
	if c.HasIterVar2() {
		r.shadows = append(r.shadows, c.IterVar2())
	}
	r.walk(c.LoopCondition())
	r.walk(c.LoopStep())
	r.shadows = r.shadows[:outside]
}

// isVariables reports whether e stands for the variables of the policy. A leading
// dot passes by the variables of comprehensions.
func (r *reads) isVariables(e ast.Expr) bool {
	if e.Kind() != ast.IdentKind {
		return false
	}
	switch e.AsIdent() {
	case variablesName:
		return !slices.Contains(r.shadows, variablesName)
	case "." + variablesName:
		return true
	}
	return false
}

// name adds a name as it is written and as MapValue.Find of
// k8s.io/apiserver/pkg/cel/lazy understands it.
func (r *reads) name(written string) {
	r.names = append(r.names, written)
	if meant, ok := apiservercel.Unescape(written); ok && meant != written {
		r.names = append(r.names, meant)
	}
}
