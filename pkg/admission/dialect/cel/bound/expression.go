// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"maps"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
)

// variablesName is the identifier under which a policy reads its variables.
const variablesName = "variables"

// Expression is what is known of the cost of one expression. It does not change. The
// zero value and nil have no bound.
type Expression struct {
	checked *celast.AST
	// names are the variables that the expression may read, sorted, and read are they;
	// nil for one that nothing is known of.
	names []string
	read  []*Expression
}

// Analyze returns what is known of checked, which may read variables by their names.
// It keeps checked, and of variables only those that the expression reads. A
// variable that is missing or nil is one that nothing is known of.
func Analyze(checked *celast.AST, variables map[string]*Expression) *Expression {
	e := &Expression{}
	if checked == nil || checked.Expr() == nil || !distinct(checked.Expr()) {
		return e
	}
	e.checked = checked
	names := map[string]bool{}
	if readsVariables(checked.Expr(), names) {
		for name := range variables {
			names[name] = true
		}
	}
	e.names = slices.Sorted(maps.Keys(names))
	for _, name := range e.names {
		e.read = append(e.read, variables[name])
	}
	return e
}

// Cost returns an upper bound of what evaluating the expression itself costs on
// data no larger than s, and whether there is one. What its variables cost is not
// included: each is an evaluation of its own.
func (e *Expression) Cost(s Sizes) (limit uint64, ok bool) {
	if e == nil || e.checked == nil {
		return 0, false
	}
	w := newWalk(s)
	_, cost := w.expression(e)
	return cost, cost != unbounded
}

// Variables returns the names of the variables that the expression may read itself,
// sorted: not those that only its variables read. Callers must not change it.
func (e *Expression) Variables() []string {
	if e == nil {
		return nil
	}
	return e.names
}

// variable returns what is known of the variable called name, or nil.
func (e *Expression) variable(name string) *Expression {
	i, found := slices.BinarySearch(e.names, name)
	if !found {
		return nil
	}
	return e.read[i]
}

// readsVariables adds the names of the variables that expr selects to names, and
// tells whether it reads variables in another way, in which case it may read all.
func readsVariables(expr celast.Expr, names map[string]bool) (all bool) {
	if expr.Kind() == celast.SelectKind && isVariables(expr.AsSelect().Operand()) {
		names[expr.AsSelect().FieldName()] = true
		return false
	}
	if isVariables(expr) {
		return true
	}
	for child := range children(expr) {
		all = readsVariables(child, names) || all
	}
	return all
}

// isVariables does not look at scopes: an iteration variable of this name only
// makes the expression seem to read more than it does.
func isVariables(expr celast.Expr) bool {
	return expr.Kind() == celast.IdentKind && strings.TrimPrefix(expr.AsIdent(), ".") == variablesName
}

// distinct tells whether no two nodes of expr have one ID. The cost tracker of
// cel-go finds the arguments of a call by their IDs and may take a value from an
// earlier round of a loop; if IDs are distinct, that is a value of the same node,
// which has the same bound.
func distinct(expr celast.Expr) bool {
	seen := map[int64]bool{}
	return distinctFrom(expr, seen)
}

func distinctFrom(expr celast.Expr, seen map[int64]bool) bool {
	if seen[expr.ID()] {
		return false
	}
	seen[expr.ID()] = true
	for child := range children(expr) {
		if !distinctFrom(child, seen) {
			return false
		}
	}
	return true
}
