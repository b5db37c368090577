// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"errors"
)

// A node is a part of a compiled expression. Nodes are immutable. What is a NotFoundError
// and what is null follows the library's interpreter.
type node interface {
	eval(ctx context.Context, run *Run, data any) (any, error)
}

// null is the result of what the library evaluates to null.
func null() (any, error) {
	return nil, nil //nolint:nilnil // null is a value
}

// orNull evaluates a node where a missing field is null.
func orNull(ctx context.Context, run *Run, n node, data any) (any, error) {
	value, err := n.eval(ctx, run, data)
	if err != nil && isMissing(err) {
		return null()
	}
	return value, err
}

func isMissing(err error) bool {
	_, ok := err.(*NotFoundError) //nolint:errorlint // an error that a missing field has led to is another one
	return ok
}

// orNothing evaluates a node where every mistake is null: the library forgets errors to
// the left of a filter, a flattening and the values of an object. It does not forget
// what stops an evaluation.
func orNothing(ctx context.Context, run *Run, n node, data any) (any, error) {
	value, err := n.eval(ctx, run, data)
	if err != nil && !stops(err) {
		return null()
	}
	return value, err
}

// scopeError is an error of the Scope, which nothing in an expression makes null of.
type scopeError struct{ err error }

func (e *scopeError) Error() string { return e.err.Error() }

func (e *scopeError) Unwrap() error { return e.err }

// stops says whether an error is none of the expression's own.
func stops(err error) bool {
	if _, ok := errors.AsType[*scopeError](err); ok {
		return true
	}
	return errors.Is(err, ErrBudget) || errors.Is(err, errNotFinite) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isFalse is the truth of the specification: null, false and what is empty are false,
// and every number is true.
func isFalse(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

type literal struct{ value any }

func (l *literal) eval(ctx context.Context, run *Run, _ any) (any, error) {
	return l.value, run.take(ctx, 1, 0)
}

// current is the value itself, @.
type current struct{}

func (current) eval(ctx context.Context, run *Run, data any) (any, error) {
	if err := run.take(ctx, 1, 0); err != nil {
		return nil, err
	}
	scope, ok := data.(Scope)
	if !ok {
		return data, nil
	}
	fields, err := scope.Object(ctx)
	if err != nil {
		return nil, &scopeError{err: err}
	}
	return fields, run.take(ctx, len(fields), objectBytes(len(fields)))
}

// reference is an argument that the function evaluates itself.
type reference struct{ value *Reference }

func (r *reference) eval(ctx context.Context, run *Run, _ any) (any, error) {
	return r.value, run.take(ctx, 1, 0)
}
