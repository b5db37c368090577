// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import "context"

// path is fields and indexes that follow each other.
type path struct{ steps []step }

// step is a field, when missing is set, or an index.
type step struct {
	name    string
	missing *NotFoundError
	index   int
}

func (p *path) eval(ctx context.Context, run *Run, data any) (any, error) {
	if err := run.take(ctx, len(p.steps), 0); err != nil {
		return nil, err
	}
	for i := range p.steps {
		s := &p.steps[i]
		if s.missing == nil {
			data = at(data, s.index)
			continue
		}
		switch v := data.(type) {
		case map[string]any:
			value, ok := v[s.name]
			if !ok {
				return nil, s.missing
			}
			data = value
		case Scope:
			value, ok, err := v.Field(ctx, s.name)
			if err != nil {
				return nil, &scopeError{err: err}
			}
			if !ok {
				return nil, s.missing
			}
			data = value
		default:
			data = nil
		}
	}
	return data, nil
}

// at returns an item of a list, from the end when the index is negative, and null when
// there is none.
func at(data any, index int) any {
	items, ok := data.([]any)
	if !ok {
		return nil
	}
	if index < 0 {
		index += len(items)
	}
	if index < 0 || index >= len(items) {
		return nil
	}
	return items[index]
}

// chain is what stands between dots: each part is evaluated over the former, and a
// missing field ends it.
type chain struct{ parts []node }

func (c *chain) eval(ctx context.Context, run *Run, data any) (any, error) {
	for _, part := range c.parts {
		value, err := part.eval(ctx, run, data)
		if err != nil {
			return nil, err
		}
		data = value
	}
	return data, nil
}

// pipe is a chain in which a missing field is null.
type pipe struct{ operands []node }

func (p *pipe) eval(ctx context.Context, run *Run, data any) (any, error) {
	for _, operand := range p.operands {
		value, err := orNull(ctx, run, operand, data)
		if err != nil {
			return nil, err
		}
		data = value
	}
	return data, nil
}
