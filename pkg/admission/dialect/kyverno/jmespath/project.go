// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"errors"
	"slices"
)

// projection is the right side over each item of a list, without what is null.
type projection struct{ left, right node }

func (p *projection) eval(ctx context.Context, run *Run, data any) (any, error) {
	left, err := orNull(ctx, run, p.left, data)
	if err != nil {
		return nil, err
	}
	items, ok := left.([]any)
	if !ok {
		return null()
	}
	if err := run.take(ctx, 1, 0); err != nil {
		return nil, err
	}
	if _, ok := p.right.(current); ok && !slices.Contains(items, nil) {
		return left, run.take(ctx, len(items), 0)
	}
	return project(ctx, run, p.right, items)
}

// project evaluates a node over items. A missing field is null, and so left out.
func project(ctx context.Context, run *Run, right node, items []any) (any, error) {
	if err := run.take(ctx, 0, listBytes(len(items))); err != nil {
		return nil, err
	}
	collected := make([]any, 0, len(items))
	for _, item := range items {
		value, err := orNull(ctx, run, right, item)
		if err != nil {
			return nil, err
		}
		if err := finite(value); err != nil {
			return nil, err
		}
		if value != nil {
			collected = append(collected, value)
		}
	}
	return collected, nil
}

// values is the right side over each value of an object, by the order of the keys,
// without what is null.
type values struct {
	left, right node
	// calls says that the right side calls a function.
	calls bool
}

func (v *values) eval(ctx context.Context, run *Run, data any) (any, error) {
	left, err := orNothing(ctx, run, v.left, data)
	if err != nil {
		return nil, err
	}
	fields, ok := left.(map[string]any)
	if !ok {
		return null()
	}
	keys, err := sortedKeys(ctx, run, fields)
	if err != nil {
		return nil, err
	}
	items := make([]any, 0, 2*len(keys))
	if v.calls {
		// The library has a null for each field in front, which only functions see.
		items = items[:len(keys)]
	}
	for _, key := range keys {
		items = append(items, fields[key])
	}
	return project(ctx, run, v.right, items)
}

// sortedKeys returns the keys of an object. It pays for a list of them and of the values.
func sortedKeys(ctx context.Context, run *Run, fields map[string]any) ([]string, error) {
	if err := run.take(ctx, 1+len(fields), 2*listBytes(len(fields))); err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
}

// filter is the right side over each item of a list for which the condition is true.
type filter struct{ left, right, condition node }

func (f *filter) eval(ctx context.Context, run *Run, data any) (any, error) {
	left, err := orNothing(ctx, run, f.left, data)
	if err != nil {
		return nil, err
	}
	items, ok := left.([]any)
	if !ok {
		return null()
	}
	if err := run.take(ctx, 1, listBytes(0)); err != nil {
		return nil, err
	}
	collected := []any{}
	for _, item := range items {
		verdict, err := orNull(ctx, run, f.condition, item)
		if err != nil {
			return nil, err
		}
		if isFalse(verdict) {
			continue
		}
		value, err := orNull(ctx, run, f.right, item)
		if err != nil {
			return nil, err
		}
		if err := finite(value); err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		// Growing doubles.
		if err := run.take(ctx, 0, 32); err != nil {
			return nil, err
		}
		collected = append(collected, value)
	}
	return collected, nil
}

// flatten puts the items of lists in a list into the place of those lists.
type flatten struct{ left node }

func (f *flatten) eval(ctx context.Context, run *Run, data any) (any, error) {
	left, err := orNothing(ctx, run, f.left, data)
	if err != nil {
		return nil, err
	}
	items, ok := left.([]any)
	if !ok {
		return null()
	}
	size, nested := 0, false
	for _, item := range items {
		if inner, ok := item.([]any); ok {
			size += len(inner)
			nested = true
		} else {
			size++
		}
	}
	if err := run.take(ctx, 1+len(items), 0); err != nil {
		return nil, err
	}
	if !nested {
		return left, nil
	}
	if err := run.take(ctx, size, listBytes(size)); err != nil {
		return nil, err
	}
	flat := make([]any, 0, size)
	for _, item := range items {
		if inner, ok := item.([]any); ok {
			flat = append(flat, inner...)
		} else {
			flat = append(flat, item)
		}
	}
	return flat, nil
}

// slice is [start:stop:step].
type slice struct {
	start, stop *int
	step        int
}

func (s *slice) eval(ctx context.Context, run *Run, data any) (any, error) {
	items, ok := data.([]any)
	if !ok {
		return null()
	}
	if s.step == 0 {
		return nil, errors.New("the step of a slice is 0")
	}
	n := len(items)
	first, end := 0, n
	if s.step < 0 {
		first, end = n-1, -1
	}
	if s.start != nil {
		first = s.bound(*s.start, n)
	}
	if s.stop != nil {
		end = s.bound(*s.stop, n)
	}
	if s.step == 1 {
		return items[first:max(first, end):max(first, end)], run.take(ctx, 1, 0)
	}
	var taken []any
	if s.step > 0 {
		taken = every(items, first, end, s.step)
	} else {
		taken = everyBack(items, first, end, s.step)
	}
	return taken, run.take(ctx, 1+len(taken), listBytes(len(taken)))
}

// bound puts one bound of the slice into a list of length n.
func (s *slice) bound(i, n int) int {
	low, high := 0, n
	if s.step < 0 {
		low, high = -1, n-1
	}
	if i < 0 {
		i += n
	}
	return min(max(i, low), high)
}

func every(items []any, first, end, step int) []any {
	taken := []any{}
	for i := first; i < end; i += step {
		taken = append(taken, items[i])
		if step >= end-i {
			break
		}
	}
	return taken
}

func everyBack(items []any, first, end, step int) []any {
	taken := []any{}
	for i := first; i > end; i += step {
		taken = append(taken, items[i])
		if step <= end-i {
			break
		}
	}
	return taken
}
