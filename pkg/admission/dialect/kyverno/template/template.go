// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package template compiles values with variables once, and renders them for requests:
// {{ expression }} in texts and keys, nested, shallow and escaped, {{@}}, and references
// $(...) into the rule. It follows Kyverno's pkg/engine/variables in what they become.
// It does not know what variables stand for.
//
// A text that is one variable becomes its value, of whatever type; in the midst of a text
// a value becomes text, and JSON when it is none. What comes of that may hold variables
// again, which are replaced in their turn, except in the value of {{- expression }}, and
// in the value of a text that is one variable and becomes a text. \{{ stands for {{.
package template

import (
	"context"
	"slices"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// Place says where in a rule a value stands.
type Place struct {
	// Rule is the decoded rule, into which $(...) refers.
	Rule any
	// Path leads from the rule to the value: keys, and indices as decimal numbers.
	Path []string
}

// A Compiler compiles templates. It is safe for concurrent use, and must not be copied
// after it has been used.
type Compiler struct {
	// Expressions compiles what stands between braces.
	Expressions *jmespath.Compiler

	// recent holds expressions whose text depends on requests.
	recent cache
}

// Fault is a mistake in a template.
type Fault struct {
	// Later says that only requests for which the variable is needed come to the
	// mistake, which is one of a call.
	Later bool
	// Path leads from the value to the mistake.
	Path   []string
	Detail string
}

// Use is one name of a variable in an expression.
type Use struct {
	Name string
	// Leading says that the expression begins with the name.
	Leading bool
	// Expression is the text between the braces, without the space around it.
	Expression string
	// Path leads from the value to the text or the key in which the expression stands.
	Path []string
}

// Template is a compiled value. It is immutable and safe for concurrent use.
type Template struct {
	compiler *Compiler
	// static is the value when node is nil.
	static any
	node   node
	uses   []Use
}

// A node is a part of a value that depends on the request.
type node interface {
	render(ctx context.Context, r *rendering) (any, error)
}

// rendering is what all nodes of a template are given for one request.
type rendering struct {
	compiler *Compiler
	run      *jmespath.Run
	scope    jmespath.Scope
	// level counts the variables in whose values the current value stands.
	level int
}

// Value compiles decoded JSON. All faults are reported at once; the template is usable
// even then, and fails where they are.
func (c *Compiler) Value(value any, at Place) (*Template, []Fault) {
	comp := newCompilation(c, at)
	result := comp.value(value, nil)
	return &Template{compiler: c, static: result.value, node: result.node, uses: comp.uses}, comp.faults
}

// Static returns the value when it is the same for all requests.
func (t *Template) Static() (any, bool) {
	return t.static, t.node == nil
}

// Roots returns the names of the variables that expressions ask for, each once and in
// order, as far as they are known before a request.
func (t *Template) Roots() []string {
	var names []string
	for _, use := range t.uses {
		if !slices.Contains(names, use.Name) {
			names = append(names, use.Name)
		}
	}
	return names
}

// Uses returns where the names of variables stand, as far as they are known before a
// request: those in the outer one of nested variables are not. {{@}} uses request.
// Nobody may modify the result.
func (t *Template) Uses() []Use { return t.uses }

// Render returns the value for a request. It shares what has no variables with the
// template, and nobody may modify it. The error is an *Error.
func (t *Template) Render(ctx context.Context, run *jmespath.Run, scope jmespath.Scope) (any, error) {
	if t.node == nil {
		return t.static, nil
	}
	return t.node.render(ctx, &rendering{compiler: t.compiler, run: run, scope: scope})
}
