// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// query is a jmesPath. A nil query is none.
type query struct {
	// static is the expression when its text has no variables.
	static   *jmespath.Expression
	text     *template.Template
	compiler *jmespath.Compiler
}

// query compiles the jmesPath of a field of the entry.
func (c *compiler) query(text string, parts ...string) *query {
	if text == "" {
		return nil
	}
	compiled := &query{text: c.template(text, parts...), compiler: c.templates.Expressions}
	static, ok := compiled.text.Static()
	if !ok {
		return compiled
	}
	plain, ok := static.(string)
	if !ok {
		return compiled
	}
	expression, err := compiled.compiler.Compile(plain)
	if err != nil {
		fault := field.Invalid(below(c.path, parts), text, err.Error())
		if expression != nil {
			fault = fault.WithOrigin(policy.OriginRequest)
		}
		c.errs = append(c.errs, fault)
	}
	compiled.static = expression
	return compiled
}

// What compiling an expression takes for each byte of its text, about.
const (
	compileSteps = 2
	compileSize  = 32
)

// expression returns the expression for a request. It is nil when there is none: as in
// Kyverno, also when the variables in it leave nothing of it.
func (q *query) expression(ctx context.Context, from horizon) (found *jmespath.Expression, err error) {
	if q == nil || q.static != nil {
		return q.fixed(), nil
	}
	plain, err := text(ctx, q.text, from)
	if err == nil && plain != "" {
		found, err = q.compile(ctx, plain, from)
	}
	if err != nil {
		return nil, fmt.Errorf("jmesPath: %w", err)
	}
	return found, nil
}

func (q *query) compile(ctx context.Context, plain string, from horizon) (*jmespath.Expression, error) {
	if err := from.v.run.Spend(ctx, len(plain)*compileSteps, len(plain)*compileSize); err != nil {
		return nil, err
	}
	return q.compiler.Compile(plain)
}

func (q *query) fixed() *jmespath.Expression {
	if q == nil {
		return nil
	}
	return q.static
}
