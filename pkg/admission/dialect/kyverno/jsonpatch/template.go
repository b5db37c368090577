// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

// Fault is a mistake in the text of a patch.
type Fault = template.Fault

// errEmpty says that nothing is left of a patch.
var errEmpty = errors.New("the patch is empty: its variables have become nothing")

// Template is the text of a patch with variables. It is immutable and safe for
// concurrent use.
//
// Kyverno puts values into the text and parses the result. Where a variable stands in
// the place of a scalar, or in one, the text is parsed before there is a request, and a
// value can do no more than to be that scalar, or a part of it:
//
//   - In quotes, and in a block, it becomes text as it is: quotes, line breaks and
//     backslashes in it mean nothing to YAML.
//   - A scalar without quotes that is a variable as a whole becomes its value, of
//     whatever type. A text is read as YAML reads it there: yes is a boolean, 07 a
//     number, and what YAML takes for something other than one value is an error.
//   - A scalar without quotes of which a variable is a part is read as YAML once the
//     text of the value is in it.
//
// Elsewhere, in the place of a key or of operations, the text is parsed for each request,
// as it is when a value holds the braces of variables, which are replaced in their turn.
type Template struct {
	text *template.Template
	// form is nil when the text is parsed for each request.
	form *form
	// err is why the patch cannot be rendered, whatever the request is.
	err error
}

// Compile compiles the text of a patch. All faults are reported at once; the template is
// usable even then, and fails.
func Compile(text string, c *template.Compiler, at template.Place) (*Template, []Fault) {
	whole, faults := c.Text(text, at)
	t := &Template{text: whole}
	if len(faults) > 0 {
		t.err = errors.New(faults[0].Detail)
		return t, faults
	}
	parts := whole.Parts()
	if onlyVariables(parts) {
		return t, nil
	}
	form, errs := newForm(parts)
	for _, err := range errs {
		faults = append(faults, Fault{Detail: err.Error()})
		t.err = errs[0]
	}
	t.form = form
	return t, faults
}

// onlyVariables says whether a text holds nothing but variables.
func onlyVariables(parts []template.Part) bool {
	found := false
	for _, part := range parts {
		found = found || part.Variable != nil
		if strings.TrimSpace(part.Literal) != "" {
			return false
		}
	}
	return found
}

// Uses returns where the names of variables stand, as far as they are known before a
// request. Nobody may modify the result.
func (t *Template) Uses() []template.Use { return t.text.Uses() }

// Render returns the operations for a request. They share values with the template and
// with what variables stand for, and nobody may modify them. What they put into an
// object is taken from the bytes of the run.
func (t *Template) Render(ctx context.Context, run *jmespath.Run, scope jmespath.Scope) ([]Operation, error) {
	if t.err != nil {
		return nil, t.err
	}
	if t.form == nil {
		return t.parse(ctx, run, scope)
	}
	values, err := t.form.values(ctx, run, scope)
	if err != nil {
		return nil, err
	}
	if !braced(values) {
		return t.form.render(ctx, run, values)
	}
	operations, err := t.parse(ctx, run, scope)
	if err != nil {
		return nil, err
	}
	return operations, t.form.check(operations)
}

// parse puts the values into the text and parses the result, as Kyverno does.
func (t *Template) parse(ctx context.Context, run *jmespath.Run, scope jmespath.Scope) ([]Operation, error) {
	rendered, err := t.text.Render(ctx, run, scope)
	if err != nil {
		return nil, err
	}
	text, ok := rendered.(string)
	if !ok || text == "" {
		return nil, errEmpty
	}
	if err := spendOnParsing(ctx, run, text); err != nil {
		return nil, err
	}
	operations, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("with the values of its variables, %w", err)
	}
	return operations, nil
}

// spendOnParsing takes what parsing a text is taken to need from the budget.
func spendOnParsing(ctx context.Context, run *jmespath.Run, text string) error {
	const bytesPerByte = 16
	return run.Spend(ctx, 1+len(text), bytesPerByte*len(text))
}

// braced says whether a text among values holds what may be a variable.
func braced(values []any) bool {
	for _, value := range values {
		if text, ok := value.(string); ok && strings.Contains(text, "{{") {
			return true
		}
	}
	return false
}
