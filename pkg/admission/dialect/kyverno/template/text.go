// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"strings"
)

// maxRounds bounds how deep variables may stand in variables, and in their values.
const maxRounds = 32

// text is a text with variables. They are replaced in rounds, as Kyverno's
// substituteVariablesIfAny does: all that scan finds, then all that it finds in the
// result, until it finds none.
type text struct {
	// path leads from the value that was compiled to the text.
	path   []string
	self   *self
	source string
	// first are the variables of the first round.
	first []found
	// later has those of the rounds after it that do not depend on values, by their
	// text.
	later map[string]*variable
}

// found is a variable and where it stands.
type found struct {
	span
	*variable
}

// render implements node.
func (t *text) render(ctx context.Context, r *rendering) (any, error) {
	current, variables := t.source, t.first
	for range maxRounds + 1 {
		if len(variables) == 0 {
			return unescape(current), nil
		}
		if only := variables[0]; only.start == 0 && only.end == len(current) {
			value, err := only.search(ctx, r, t.path)
			if err != nil {
				return nil, err
			}
			return t.again(ctx, r, value)
		}
		next, err := t.replace(ctx, r, current, variables)
		if err != nil {
			return nil, err
		}
		current = next
		if variables[len(variables)-1].shallow {
			return unescape(current), nil
		}
		variables = t.find(current)
	}
	return nil, &Error{Path: t.path, Err: errRounds}
}

// replace puts the values of variables into a text.
func (t *text) replace(ctx context.Context, r *rendering, current string, variables []found) (string, error) {
	w := writer{run: r.run, text: make([]byte, 0, len(current))}
	at := 0
	for _, v := range variables {
		err := w.raw(current[at:v.start])
		if err == nil {
			at = v.end
			err = t.put(ctx, r, &w, v.variable)
		}
		if err != nil {
			return "", t.wrap(err)
		}
	}
	if err := w.raw(current[at:]); err != nil {
		return "", t.wrap(err)
	}
	if err := r.run.Spend(ctx, 1, len(w.text)); err != nil {
		return "", t.wrap(err)
	}
	return string(w.text), nil
}

// put adds the value of a variable. What a shallow one holds is escaped, so that
// the next round does not look at it.
func (t *text) put(ctx context.Context, r *rendering, w *writer, v *variable) error {
	value, err := v.search(ctx, r, t.path)
	if err != nil {
		return err
	}
	start := len(w.text)
	if written, ok := value.(string); ok {
		err = w.raw(written)
	} else {
		err = w.value(ctx, value, 0)
	}
	if err != nil {
		return &Error{Path: t.path, Expression: v.usual.text, Err: err}
	}
	if v.shallow {
		written := string(w.text[start:])
		w.text = w.text[:start]
		return w.raw(strings.ReplaceAll(written, "{{", `\{{`))
	}
	return nil
}

// find returns the variables of a text that came of values.
func (t *text) find(current string) []found {
	if !strings.Contains(current, "{{") {
		return nil
	}
	spans := scan(current)
	variables := make([]found, len(spans))
	for i, s := range spans {
		source := current[s.start:s.end]
		v, ok := t.later[source]
		if !ok {
			v = t.compile(source, late)
		}
		variables[i] = found{span: s, variable: v}
	}
	return variables
}

// wrap adds the path to an error that has none.
func (t *text) wrap(err error) error {
	if err, ok := err.(*Error); ok { //nolint:errorlint // Only this very error has the path.
		return err
	}
	return &Error{Path: t.path, Err: err}
}
