// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import "context"

// or is the first operand that is true, or else the last one. A missing field is null.
type or struct{ operands []node }

func (o *or) eval(ctx context.Context, run *Run, data any) (any, error) {
	var value any
	for _, operand := range o.operands {
		var err error
		if value, err = orNull(ctx, run, operand, data); err != nil {
			return nil, err
		}
		if !isFalse(value) {
			return value, nil
		}
	}
	return value, nil
}

// and is the first operand that is false, or else the last one. A missing field is null
// in all but the last.
type and struct{ operands []node }

func (a *and) eval(ctx context.Context, run *Run, data any) (any, error) {
	last := len(a.operands) - 1
	for _, operand := range a.operands[:last] {
		value, err := orNull(ctx, run, operand, data)
		if err != nil || isFalse(value) {
			return value, err
		}
	}
	return a.operands[last].eval(ctx, run, data)
}

type not struct{ operand node }

func (n *not) eval(ctx context.Context, run *Run, data any) (any, error) {
	if err := run.take(ctx, 1, 0); err != nil {
		return nil, err
	}
	value, err := orNull(ctx, run, n.operand, data)
	if err != nil {
		return nil, err
	}
	return isFalse(value), nil
}

// equality is == and !=.
type equality struct {
	left, right node
	negated     bool
}

func (e *equality) eval(ctx context.Context, run *Run, data any) (any, error) {
	left, right, err := both(ctx, run, e.left, e.right, data)
	if err != nil {
		return nil, err
	}
	same, err := equal(ctx, run, left, right, 0)
	if err != nil {
		return nil, err
	}
	return same != e.negated, nil
}

// order is <, <=, > and >=: null unless both sides are numbers.
type order struct {
	left, right          node
	less, equal, greater bool
}

func (o *order) eval(ctx context.Context, run *Run, data any) (any, error) {
	left, right, err := both(ctx, run, o.left, o.right, data)
	if err != nil {
		return nil, err
	}
	if !isNumber(left) || !isNumber(right) {
		return null()
	}
	sign, ordered := compareNumbers(left, right)
	return ordered && (o.less && sign < 0 || o.equal && sign == 0 || o.greater && sign > 0), nil
}

func both(ctx context.Context, run *Run, left, right node, data any) (any, any, error) {
	if err := run.take(ctx, 1, 0); err != nil {
		return nil, nil, err
	}
	l, err := orNull(ctx, run, left, data)
	if err != nil {
		return nil, nil, err
	}
	r, err := orNull(ctx, run, right, data)
	return l, r, err
}
