// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"fmt"
	"slices"
)

// Part is a piece of a text: a literal, or a variable.
type Part struct {
	Literal string
	// Variable renders the value of the variable. It is nil for a literal.
	Variable *Template
}

// Text compiles a text that renders to a string: what makes something else of it, a
// variable that is the whole text and no string, is an error then.
func (c *Compiler) Text(source string, at Place) (*Template, []Fault) {
	comp := newCompilation(c, at)
	result := &Template{compiler: c}
	static, text, err := comp.text(source, nil, nil)
	switch {
	case err != nil:
		result.node = comp.fail(nil, err)
	case text != nil:
		result.node = &textual{text: text, at: at}
	default:
		result.static = static
	}
	result.uses = comp.uses
	return result, comp.faults
}

// textual is a text that has to stay one.
type textual struct {
	text *text
	at   Place
}

// render implements node.
func (t *textual) render(ctx context.Context, r *rendering) (any, error) {
	value, err := t.text.render(ctx, r)
	if err != nil {
		return nil, err
	}
	if _, ok := value.(string); !ok {
		expression, _ := between(t.text.source)
		return nil, &Error{Expression: expression, Err: fmt.Errorf("it is %s, but must be a string", kind(value))}
	}
	return value, nil
}

// Parts returns the pieces of a template that Text has made. They make up what Render
// returns as long as no value of a variable holds a brace or a backslash: values that
// do may form other variables together with what stands around them.
func (t *Template) Parts() []Part {
	if source, ok := t.static.(string); ok && t.node == nil {
		return literal(nil, source)
	}
	whole, ok := t.node.(*textual)
	if !ok {
		return nil
	}
	source := whole.text.source
	var parts []Part
	at := 0
	for _, s := range whole.text.outermost() {
		parts = literal(parts, source[at:s.start])
		at = s.end
		// References have been replaced, and what looks like one now is none.
		variable, _ := t.compiler.variable(source[s.start:s.end], whole.at)
		parts = append(parts, Part{Variable: variable})
	}
	return literal(parts, source[at:])
}

// literal adds a piece that is not empty.
func literal(parts []Part, source string) []Part {
	if source == "" {
		return parts
	}
	return append(parts, Part{Literal: unescape(source)})
}

// variable compiles a text that is one variable and has no references.
func (c *Compiler) variable(source string, at Place) (*Template, []Fault) {
	comp := newCompilation(c, at)
	comp.references = nil
	result := comp.value(source, nil)
	return &Template{compiler: c, node: result.node, uses: comp.uses}, comp.faults
}

// outermost returns the variables of a text that are in no other one, in order.
func (t *text) outermost() []span {
	rounds, err := plan(t.source)
	if err != nil {
		return nil
	}
	all := slices.Concat(rounds...)
	slices.SortFunc(all, func(a, b planned) int { return a.start - b.start })
	var outer []span
	for _, s := range all {
		if last := len(outer) - 1; last < 0 || s.start >= outer[last].end {
			outer = append(outer, s.span)
		}
	}
	return outer
}
