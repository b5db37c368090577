// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// leaf is a part of an expression that an explanation shows the value of: what is
// read from the outside, such as object.spec.replicas, has(object.spec), or what
// the authorizer answers. What depends on the variable of a comprehension has
// many values and is no leaf; the list that the comprehension runs over is one.
type leaf struct {
	text string
	// ids are the places in the expression where it stands.
	ids []int64
	// reads is everything that the value depends on.
	reads []path
}

// path is a chain of constant selections that begins at a variable of the
// environment. It ends where a selection is not constant.
type path struct {
	root  string
	steps []string
}

// maxLeafText bounds the text of a leaf; longer ones are left out.
const maxLeafText = 256

// leavesOf returns the leaves of an expression in the order of its text, each
// once, and the number of those that are too long to show.
func leavesOf(checked *ast.AST, source string) (leaves []leaf, tooLong int) {
	c := &collector{
		printer: printer{info: checked.SourceInfo(), source: []rune(source)},
		index:   map[string]int{},
	}
	c.visit(checked.Expr())
	return c.leaves, c.tooLong
}

type collector struct {
	printer printer
	bound   []string // the variables of the comprehensions around
	leaves  []leaf
	index   map[string]int // by text
	tooLong int
}

func (c *collector) visit(e ast.Expr) {
	if c.isLeaf(e) && !dependsOn(e, c.bound) {
		c.add(e)
		c.visitArguments(e)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		c.visit(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			c.visit(call.Target())
		}
		for _, arg := range call.Args() {
			c.visit(arg)
		}
	case ast.ComprehensionKind:
		c.visitComprehension(e.AsComprehension())
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			c.visit(element)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			c.visit(entry.AsMapEntry().Key())
			c.visit(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			c.visit(field.AsStructField().Value())
		}
	case ast.IdentKind, ast.LiteralKind, ast.UnspecifiedExprKind:
	}
}

func (c *collector) visitComprehension(e ast.ComprehensionExpr) {
	c.visit(e.IterRange())
	c.visit(e.AccuInit())
	outer := len(c.bound)
	c.bound = append(c.bound, e.AccuVar(), e.IterVar())
	if e.HasIterVar2() {
		c.bound = append(c.bound, e.IterVar2())
	}
	c.visit(e.LoopCondition())
	c.visit(e.LoopStep())
	c.visit(e.Result())
	c.bound = c.bound[:outer]
}

// visitArguments looks for leaves in the indexes and arguments of a leaf.
func (c *collector) visitArguments(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		c.visitArguments(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			c.visitArguments(call.Target())
			for _, arg := range call.Args() {
				c.visit(arg)
			}
			return
		}
		c.visitArguments(call.Args()[0])
		c.visit(call.Args()[1])
	}
}

func (c *collector) add(e ast.Expr) {
	text := c.printer.text(e)
	if len(text) > maxLeafText {
		c.tooLong++
		return
	}
	if i, ok := c.index[text]; ok {
		c.leaves[i].ids = append(c.leaves[i].ids, e.ID())
		return
	}
	c.index[text] = len(c.leaves)
	c.leaves = append(c.leaves, leaf{text: text, ids: []int64{e.ID()}, reads: readsOf(e)})
}

// isLeaf says whether e has the form of a leaf, whatever its indexes are.
func (c *collector) isLeaf(e ast.Expr) bool {
	if answers(e) {
		return true
	}
	root, ok := chainRoot(e)
	switch {
	case !ok || slices.Contains(c.bound, root):
		return false
	case root == plugincel.VariableVarName: // all variables are no value
		return e.Kind() != ast.IdentKind
	}
	switch root {
	case plugincel.ObjectVarName, plugincel.OldObjectVarName, plugincel.ParamsVarName,
		plugincel.RequestVarName, plugincel.NamespaceVarName:
		return true
	}
	return false
}

// chainRoot returns the identifier at which a chain of selections and indexes
// begins.
func chainRoot(e ast.Expr) (string, bool) {
	for {
		switch e.Kind() {
		case ast.IdentKind:
			return e.AsIdent(), true
		case ast.SelectKind:
			e = e.AsSelect().Operand()
		case ast.CallKind:
			call := e.AsCall()
			if !isIndex(call) {
				return "", false
			}
			e = call.Args()[0]
		default:
			return "", false
		}
	}
}

func isIndex(call ast.CallExpr) bool {
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		return !call.IsMemberFunction() && len(call.Args()) == 2
	}
	return false
}

// answers says whether e is what the authorizer answers: a chain of its functions
// down to one that returns something to look at.
func answers(e ast.Expr) bool {
	if e.Kind() != ast.CallKind || !e.AsCall().IsMemberFunction() {
		return false
	}
	switch e.AsCall().FunctionName() {
	case "allowed", "errored", "error", "reason":
	default:
		return false
	}
	for e.Kind() == ast.CallKind && e.AsCall().IsMemberFunction() {
		e = e.AsCall().Target()
	}
	root, ok := chainRoot(e)
	return ok && (root == plugincel.AuthorizerVarName || root == plugincel.RequestResourceAuthorizerVarName)
}

// dependsOn says whether any of names stands in e. Where a comprehension in e
// shadows one, the answer is still yes.
func dependsOn(e ast.Expr, names []string) bool {
	if len(names) == 0 {
		return false
	}
	return slices.ContainsFunc(readsOf(e), func(p path) bool { return slices.Contains(names, p.root) })
}

// readsOf returns the paths of all identifiers in e, those included that a
// comprehension binds.
func readsOf(e ast.Expr) []path {
	var reads []path
	inner := map[int64]bool{} // parts of a chain that has been added
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if inner[e.ID()] {
			return
		}
		if p, ok := pathOf(e, inner); ok {
			reads = append(reads, p)
		}
	}))
	return reads
}

// pathOf returns the path that e is, and notes of which parts it consists.
func pathOf(e ast.Expr, inner map[int64]bool) (path, bool) {
	root, ok := chainRoot(e)
	if !ok {
		return path{}, false
	}
	p := path{root: root}
	for e.Kind() != ast.IdentKind {
		step, operand, constant := lastStep(e)
		if constant {
			p.steps = append(p.steps, step)
		} else { // what follows it does not narrow what is read
			p.steps = nil
		}
		e = operand
		inner[e.ID()] = true
	}
	slices.Reverse(p.steps)
	return p, true
}

// lastStep splits the last selection or index from a chain.
func lastStep(e ast.Expr) (step string, operand ast.Expr, constant bool) {
	if e.Kind() == ast.SelectKind {
		return e.AsSelect().FieldName(), e.AsSelect().Operand(), true
	}
	args := e.AsCall().Args()
	step, constant = constantIndex(args[1])
	return step, args[0], constant
}

func constantIndex(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}
