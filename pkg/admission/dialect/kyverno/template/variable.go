// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// parseBytes is what compiling one byte of an expression is taken to need.
const parseBytes = 16

// errEmpty says that nothing stands where an expression should.
var errEmpty = errors.New("the expression is empty")

// expression is an expression that may not be valid.
type expression struct {
	text     string
	compiled *jmespath.Expression
	err      error
	// mistake is why compiled can fail only, when it is there nevertheless.
	mistake error
}

// variable is what stands between two pairs of braces.
type variable struct {
	shallow bool
	// usual is the expression, for what has no other one below.
	usual expression
	// deletes is the expression for requests that delete, if that is another one.
	deletes *expression
	// target is the expression where the scope has a target, for {{@}} only.
	target *expression
}

// compile returns the variable of a text with its braces, at a path of the value.
func (t *text) compile(source string, compile func(text string) expression) *variable {
	written, shallow := between(source)
	v := &variable{shallow: shallow}
	if written == "@" {
		target := compile(t.self.expression("target", t.path))
		v.target = &target
		written = t.self.expression("request.object", t.path)
	}
	v.usual = compile(written)
	if strings.Contains(written, "request.object") {
		deletes := compile(strings.ReplaceAll(written, "request.object", "request.oldObject"))
		v.deletes = &deletes
	}
	return v
}

// compile compiles an expression before there is a request.
func (c *Compiler) compile(text string) expression {
	if text == "" {
		return expression{err: errEmpty}
	}
	compiled, err := c.Expressions.Compile(text)
	if mistake, ok := errors.AsType[*jmespath.CallError](err); ok {
		return expression{text: text, compiled: compiled, mistake: mistake}
	}
	return expression{text: text, compiled: compiled, err: err}
}

// search evaluates the variable, and tells those who asked for an explanation.
func (v *variable) search(ctx context.Context, r *rendering, path []string) (any, error) {
	e, err := v.choose(ctx, r)
	if err != nil {
		return nil, &Error{Path: path, Expression: v.usual.text, Err: err}
	}
	value, err := e.search(ctx, r)
	if r.run.Resolved != nil {
		r.run.Resolved(e.text, value, err)
	}
	if err != nil {
		return nil, &Error{Path: path, Expression: e.text, Err: err}
	}
	return value, nil
}

func (v *variable) choose(ctx context.Context, r *rendering) (*expression, error) {
	if v.target != nil {
		_, ok, err := r.scope.Field(ctx, "target")
		if err != nil {
			return nil, fmt.Errorf("target: %w", err)
		}
		if ok {
			return v.target, nil
		}
	}
	if v.deletes != nil && r.run.Deletes {
		return v.deletes, nil
	}
	return &v.usual, nil
}

func (e *expression) search(ctx context.Context, r *rendering) (any, error) {
	if e.err != nil {
		return nil, e.err
	}
	if err := r.run.Spend(ctx, 1, 0); err != nil {
		return nil, err
	}
	if e.compiled != nil {
		return e.compiled.Search(ctx, r.run, r.scope)
	}
	compiled, err := r.compiler.compileLate(ctx, r.run, e.text)
	if err != nil {
		return nil, err
	}
	return compiled.Search(ctx, r.run, r.scope)
}

// late stands for an expression whose text depends on the request: it is compiled when
// it is needed.
func late(text string) expression {
	if text == "" {
		return expression{err: errEmpty}
	}
	return expression{text: text}
}

// compileLate compiles an expression whose text depends on the request.
func (c *Compiler) compileLate(ctx context.Context, run *jmespath.Run, text string) (*jmespath.Expression, error) {
	if found, ok := c.recent.get(text); ok {
		return found, nil
	}
	if text == "" {
		return nil, errEmpty
	}
	if err := run.Spend(ctx, len(text), parseBytes*len(text)); err != nil {
		return nil, err
	}
	compiled, err := c.Expressions.Compile(text)
	if compiled == nil {
		return nil, err
	}
	c.recent.put(text, compiled)
	return compiled, nil
}
