// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"fmt"
)

// list is [a, b]: null over null, and a missing field is null in it.
type list struct{ items []node }

func (l *list) eval(ctx context.Context, run *Run, data any) (any, error) {
	if data == nil {
		return nil, run.take(ctx, 1, 0)
	}
	if err := run.take(ctx, 1, listBytes(len(l.items))); err != nil {
		return nil, err
	}
	made := make([]any, len(l.items))
	for i, item := range l.items {
		value, err := orNull(ctx, run, item, data)
		if err != nil {
			return nil, err
		}
		if err := weigh(ctx, run, value, 1); err != nil {
			return nil, err
		}
		made[i] = value
	}
	return made, nil
}

// object is {a: b}, which is to missing fields and to null what list is. Of equal keys
// the last one counts.
type object struct {
	keys   []string
	values []node
}

func (o *object) eval(ctx context.Context, run *Run, data any) (any, error) {
	if data == nil {
		return nil, run.take(ctx, 1, 0)
	}
	if err := run.take(ctx, 1, objectBytes(len(o.keys))); err != nil {
		return nil, err
	}
	made := make(map[string]any, len(o.keys))
	for i, key := range o.keys {
		value, err := orNull(ctx, run, o.values[i], data)
		if err != nil {
			return nil, err
		}
		if err := weigh(ctx, run, value, 1); err != nil {
			return nil, err
		}
		made[key] = value
	}
	return made, nil
}

// call is a call of a function. A missing field is null in its arguments.
type call struct {
	function *Function
	args     []node
}

func (c *call) eval(ctx context.Context, run *Run, data any) (any, error) {
	if err := run.take(ctx, 1, 0); err != nil {
		return nil, err
	}
	args := make([]any, len(c.args))
	for i, arg := range c.args {
		value, err := orNull(ctx, run, arg, data)
		if err != nil {
			return nil, err
		}
		args[i] = value
	}
	for i, arg := range args {
		if err := c.check(ctx, run, i, arg); err != nil {
			return nil, err
		}
	}
	value, err := c.function.Call(ctx, run, args)
	if err == nil {
		return value, nil
	}
	if isMissing(err) || stops(err) {
		return nil, err
	}
	return nil, fmt.Errorf("function %s: %w", c.function.Name, err)
}

// check says whether argument i is of the types of its parameter.
func (c *call) check(ctx context.Context, run *Run, i int, arg any) error {
	types := c.function.param(i).Types
	if items, ok := arg.([]any); ok && types&Array == 0 {
		if err := run.take(ctx, len(items), 0); err != nil {
			return err
		}
	}
	if types.has(arg) {
		return nil
	}
	return fmt.Errorf("function %s: argument %d is %s; it must be %s", c.function.Name, i+1, describe(arg), types)
}
