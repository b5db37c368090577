// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	// itemBytes and fieldBytes are what an item of a list and a field of an object are
	// taken to need.
	itemBytes  = 16
	fieldBytes = 48
	// entrySteps is what looking at an entry of a map takes, in nodes of an expression.
	entrySteps = 3
)

// again replaces the variables in the value of a text that was one variable. Only
// texts within lists and objects are looked at: Kyverno's traversal goes down into a
// value, but does not come back to a text.
func (t *text) again(ctx context.Context, r *rendering, value any) (any, error) {
	switch value.(type) {
	case map[string]any, []any:
	default:
		return value, nil
	}
	marked, err := r.marked(ctx, value, 0)
	if err != nil {
		return nil, t.wrap(err)
	}
	if !marked {
		return value, nil
	}
	if r.level >= maxRounds {
		return nil, t.wrap(errRounds)
	}
	deeper := *r
	deeper.level++
	return t.rewrite(ctx, &deeper, value)
}

// marked says whether a text of a value holds braces. It looks at all of the value even
// so: what it spends must not depend on the order of maps.
func (r *rendering) marked(ctx context.Context, value any, depth int) (bool, error) {
	if depth > maxDepth {
		return false, errDepth
	}
	marked := false
	switch value := value.(type) {
	case string:
		return strings.Contains(value, "{{"), nil
	case []any:
		if err := r.run.Spend(ctx, 1+len(value), 0); err != nil {
			return false, err
		}
		for _, item := range value {
			below, err := r.marked(ctx, item, depth+1)
			if err != nil {
				return false, err
			}
			marked = marked || below
		}
	case map[string]any:
		if err := r.run.Spend(ctx, 1+entrySteps*len(value), 0); err != nil {
			return false, err
		}
		for key, item := range value {
			below, err := r.marked(ctx, item, depth+1)
			if err != nil {
				return false, err
			}
			marked = marked || below || strings.Contains(key, "{{")
		}
	}
	return marked, nil
}

// rewrite returns a value of a variable with the variables in its texts and keys
// replaced.
func (t *text) rewrite(ctx context.Context, r *rendering, value any) (any, error) {
	if err := r.run.Spend(ctx, 1, 0); err != nil {
		return nil, t.wrap(err)
	}
	switch value := value.(type) {
	case string:
		if !strings.Contains(value, "{{") {
			return value, nil
		}
		late := &text{path: t.path, self: t.self, source: value}
		late.first = late.find(value)
		return late.render(ctx, r)
	case []any:
		return t.rewriteList(ctx, r, value)
	case map[string]any:
		return t.rewriteObject(ctx, r, value)
	default:
		return value, nil
	}
}

func (t *text) rewriteList(ctx context.Context, r *rendering, list []any) (any, error) {
	if err := r.run.Spend(ctx, 1, itemBytes*len(list)); err != nil {
		return nil, t.wrap(err)
	}
	result := make([]any, len(list))
	for i, item := range list {
		value, err := t.below(strconv.Itoa(i)).rewrite(ctx, r, item)
		if err != nil {
			return nil, err
		}
		result[i] = value
	}
	return result, nil
}

func (t *text) rewriteObject(ctx context.Context, r *rendering, values map[string]any) (any, error) {
	if err := r.run.Spend(ctx, 1, fieldBytes*len(values)); err != nil {
		return nil, t.wrap(err)
	}
	base := make(map[string]any, len(values))
	var renamed []member
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, err := t.below(key).rewrite(ctx, r, values[key])
		if err != nil {
			return nil, err
		}
		name, err := t.rewrite(ctx, r, key)
		if err != nil {
			return nil, err
		}
		written, err := t.keyName(key, name)
		if err != nil {
			return nil, err
		}
		if written == key {
			base[key] = value
			continue
		}
		renamed = append(renamed, member{name: written, value: value})
	}
	for _, f := range renamed {
		base[f.name] = f.value
	}
	return base, nil
}

// below returns what a text at a path further down has in common with t.
func (t *text) below(part string) *text {
	return &text{path: append(slices.Clip(t.path), part), self: t.self}
}
