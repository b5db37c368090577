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
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

// form is a patch that was parsed before the values of its variables are known.
type form struct {
	variables []*template.Template
	entries   []entry
	// size is what the values take that are the same for all requests.
	size int
}

// entry is one operation of a form.
type entry struct {
	// operation is that for all requests, when node is nil. Otherwise it has what is
	// known of it.
	operation Operation
	node      node
}

// newForm parses the parts of a text. The form is nil when the structure depends on
// values, or when something is wrong with it.
func newForm(parts []template.Part) (*form, []error) {
	text, marks, ok := mark(parts)
	if !ok {
		return nil, nil
	}
	entries, err := decode(text)
	if err != nil {
		if len(marks.variables) > 0 {
			err = fmt.Errorf("%w; %s stands for its variables, in the order in which they come", err, marks.text(0))
		}
		return nil, []error{err}
	}
	b := builder{marks: marks, seen: make([]bool, len(marks.variables))}
	if b.plain, ok = marks.plain(text); !ok {
		return nil, nil
	}
	b.json = strings.HasPrefix(text, "[")
	f := &form{variables: marks.variables, entries: make([]entry, len(entries))}
	var errs []error
	if len(entries) > maxOperations {
		errs = append(errs, fmt.Errorf("the patch has %d operations, at most %d are taken", len(entries), maxOperations))
	}
	for i, decoded := range entries {
		made, err := b.entry(decoded)
		if err != nil {
			errs = append(errs, fmt.Errorf("operation %d: %w", i, err))
		}
		f.entries[i] = made
		if made.node == nil {
			size, _ := patch.Size(made.operation.Value, maxText, maxDepth)
			f.size += size
		}
	}
	if len(errs) > 0 || !b.complete() {
		return nil, errs
	}
	return f, nil
}

// values returns what the variables are, in the order of the text.
func (f *form) values(ctx context.Context, run *jmespath.Run, scope jmespath.Scope) ([]any, error) {
	if len(f.variables) == 0 {
		return nil, nil
	}
	values := make([]any, len(f.variables))
	for i, variable := range f.variables {
		var err error
		if values[i], err = variable.Render(ctx, run, scope); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// render returns the operations for the values of the variables.
func (f *form) render(ctx context.Context, run *jmespath.Run, values []any) ([]Operation, error) {
	if err := run.Spend(ctx, len(f.entries), f.size); err != nil {
		return nil, err
	}
	result := make([]Operation, len(f.entries))
	r := rendering{run: run, values: values}
	for i := range f.entries {
		e := &f.entries[i]
		if e.node == nil {
			result[i] = e.operation
			continue
		}
		decoded, err := e.node.render(ctx, &r)
		if err == nil {
			result[i], err = operation(decoded)
		}
		if err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return result, nil
}

// errStructure says that the text is not what it was taken for.
var errStructure = errors.New("the value of a variable holds {{ and changes what the operations are")

// check says whether operations that were parsed from the text with its values are those
// of the form: values that were put into the text must not have added any.
func (f *form) check(operations []Operation) error {
	if len(operations) != len(f.entries) {
		return errStructure
	}
	for i, o := range operations {
		known := &f.entries[i].operation
		if known.Op != "" && known.Op != o.Op || known.Path != "" && known.Path != o.Path || known.From != "" && known.From != o.From {
			return fmt.Errorf("operation %d: %w", i, errStructure)
		}
	}
	return nil
}
