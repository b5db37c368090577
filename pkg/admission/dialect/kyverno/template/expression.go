// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"fmt"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// Expression is a bare JMESPath expression whose text may hold variables. It is
// immutable and safe for concurrent use.
type Expression struct {
	text *Template
	// static is nil when the text holds variables, or a fault.
	static *jmespath.Expression
}

// Expression compiles a bare JMESPath expression, in which variables stand between
// braces. The result is usable even when there are faults, and fails.
func (c *Compiler) Expression(source string, at Place) (*Expression, []Fault) {
	text, faults := c.Text(source, at)
	result := &Expression{text: text}
	written, ok := text.static.(string)
	if !ok || text.node != nil {
		return result, faults
	}
	bare := c.compile(strings.TrimSpace(written))
	if bare.err != nil {
		err := fmt.Errorf("expression %s: %w", excerpt(bare.text), bare.err)
		result.text.node = &broken{err: &Error{Err: err}}
		return result, append(faults, Fault{Detail: err.Error()})
	}
	result.static = bare.compiled
	if bare.mistake != nil {
		faults = append(faults, Fault{Later: true, Detail: fmt.Sprintf("expression %s: %v", excerpt(bare.text), bare.mistake)})
	}
	return result, faults
}

// Uses returns where the names of variables stand in variables. The names in the
// expression itself are those of what it searches: Names returns them.
func (e *Expression) Uses() []Use { return e.text.Uses() }

// Names returns the fields of the root of the data that the expression asks for, as far
// as they are known before a request.
func (e *Expression) Names() []string {
	if e.static == nil {
		return nil
	}
	return e.static.Roots()
}

// Search evaluates the expression over data, after its variables have been replaced
// by what they are in scope. Data may be scope itself.
func (e *Expression) Search(ctx context.Context, run *jmespath.Run, scope jmespath.Scope, data any) (any, error) {
	bare := e.static
	if bare == nil {
		rendered, err := e.text.Render(ctx, run, scope)
		if err != nil {
			return nil, err
		}
		written, _ := rendered.(string)
		written = strings.TrimSpace(written)
		if bare, err = e.text.compiler.compileLate(ctx, run, written); err != nil {
			return nil, fmt.Errorf("expression %s: %w", excerpt(written), err)
		}
	}
	return bare.Search(ctx, run, data)
}
