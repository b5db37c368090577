// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jmespath compiles JMESPath expressions once and evaluates them over decoded
// JSON, within a budget. It follows github.com/kyverno/go-jmespath, whose parser it
// uses, above all in what a missing field leads to; the evaluation is its own, because
// that of the library cannot be bounded. It does not know what the variables of a
// policy are, and has no functions but those of the JMESPath specification.
//
// Values are nil, bool, int64, float64, string, []any and map[string]any. Both kinds of
// numbers are numbers of JMESPath, equal when they have the same value. Nobody
// modifies a value that has been handed over: results share parts with the data.
package jmespath

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrBudget says that an evaluation would take more steps or more memory than is left.
var ErrBudget = errors.New("the budget of the request for variables is spent")

// NotFoundError says that a field does not exist. The fork of the library has it where
// the specification has null; ||, comparisons, arguments of functions, filters and
// multi-selects make null of it.
type NotFoundError struct {
	// Key is the name of the field.
	Key string
}

// Error implements error, in the words of the library.
func (e *NotFoundError) Error() string { return fmt.Sprintf("Unknown key %q in path", e.Key) }

// A Scope is an object whose fields are found when an expression asks for them. Only
// the root of the data can be one.
type Scope interface {
	// Field returns the value of a field, and false when there is no such field.
	Field(ctx context.Context, name string) (value any, ok bool, err error)
	// Object returns all fields that are known, for an expression that takes the root
	// as a whole.
	Object(ctx context.Context) (map[string]any, error)
}

// A Compiler compiles expressions that may call a set of functions. It is safe for
// concurrent use.
type Compiler struct {
	functions map[string]*Function
}

// NewCompiler returns a compiler for the functions of the specification and those that
// are given, which shadow them by name.
func NewCompiler(functions ...Function) *Compiler {
	c := &Compiler{functions: map[string]*Function{}}
	for _, f := range append(standard(), functions...) {
		c.functions[f.Name] = &f
	}
	return c
}

// Expression is a compiled expression. It is immutable and safe for concurrent use.
type Expression struct {
	root    node
	roots   []string
	leading string
	needed  string
}

// CallError says that an expression calls an unknown function, or one with the wrong
// number of arguments.
type CallError struct{ text string }

// Error implements error.
func (e *CallError) Error() string { return e.text }

// Compile returns the expression of a text. The error names the place of a mistake in
// the text. With a *CallError there is an expression nevertheless, which fails where it
// comes to the call, as in the library.
func (c *Compiler) Compile(text string) (*Expression, error) {
	tree, err := parse(text)
	if err != nil {
		return nil, err
	}
	b := builder{functions: c.functions}
	root, err := b.build(tree, 0)
	if err != nil {
		return nil, err
	}
	e := &Expression{root: root, leading: leading(tree), needed: needed(tree)}
	e.roots = appendRoots(nil, tree)
	if b.mistake != nil {
		return e, b.mistake
	}
	return e, nil
}

// Search evaluates the expression over data: a Scope, or any value. The result shares
// parts with data. It fails with a *NotFoundError where a field is missing, with
// ErrBudget, or with the error of a function.
func (e *Expression) Search(ctx context.Context, run *Run, data any) (any, error) {
	if err := run.Spend(ctx, 1, 0); err != nil {
		return nil, err
	}
	value, err := e.root.eval(ctx, run, data)
	if err != nil {
		return nil, err
	}
	if err := finite(value); err != nil {
		return nil, err
	}
	return value, nil
}

// Roots returns the fields of the root that the expression asks for by name, in the
// order of the text, each once. Names to the right of a projection, a dot or a pipe
// and those in filters and references are fields of something else.
func (e *Expression) Roots() []string { return slices.Clone(e.roots) }

// Leading returns the name with which the expression begins, and false when it does
// not begin with a field of the root but with a literal, a call or the root itself.
func (e *Expression) Leading() (string, bool) { return e.leading, e.leading != "" }

// Needed returns the field of the root without which the expression can only fail, and
// false when there is none: with a[*], a || b, !a or [a] a missing field is no error.
func (e *Expression) Needed() (string, bool) { return e.needed, e.needed != "" }
