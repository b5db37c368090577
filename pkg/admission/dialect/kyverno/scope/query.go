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
		fault := field.Invalid(template.Below(c.path, parts), text, err.Error())
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

// A search is a jmesPath as it is for a request. The zero value is none.
type search struct {
	expression *jmespath.Expression
	// err is why the text that its variables have made is no expression.
	err error
}

// none says that there is no jmesPath.
func (s search) none() bool { return s.expression == nil && s.err == nil }

// in returns what the jmesPath finds in data.
func (s search) in(ctx context.Context, run *jmespath.Run, data any) (any, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.expression.Search(ctx, run, data)
}

// search returns the jmesPath for a request. It is none when there is none: as in
// Kyverno, also when the variables in it leave nothing of it.
func (q *query) search(ctx context.Context, from horizon) (search, error) {
	if q == nil || q.static != nil {
		return search{expression: q.fixed()}, nil
	}
	plain, err := text(ctx, q.text, from)
	if err == nil {
		err = from.v.run.Spend(ctx, len(plain)*compileSteps, len(plain)*compileSize)
	}
	if err != nil {
		return search{}, fmt.Errorf("jmesPath: %w", err)
	}
	if plain == "" {
		return search{}, nil
	}
	expression, err := q.compiler.Compile(plain)
	return search{expression: expression, err: err}, nil
}

func (q *query) fixed() *jmespath.Expression {
	if q == nil {
		return nil
	}
	return q.static
}
