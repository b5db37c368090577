// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// list is a list of which some items depend on the request.
type list struct {
	base  []any
	items []item
}

type item struct {
	index int
	node  node
}

// render implements node.
func (l *list) render(ctx context.Context, r *rendering) (any, error) {
	if err := r.run.Spend(ctx, 1, itemBytes*len(l.base)); err != nil {
		return nil, &Error{Err: err}
	}
	result := slices.Clone(l.base)
	for _, item := range l.items {
		value, err := item.node.render(ctx, r)
		if err != nil {
			return nil, err
		}
		result[item.index] = value
	}
	return result, nil
}

// object is an object of which some fields depend on the request.
type object struct {
	// base has the fields that do not, and stands for those whose key does not.
	base map[string]any
	// fields are sorted by the keys as they were written.
	fields []member
}

// member is one field of an object.
type member struct {
	// key is nil when name does not depend on the request.
	key  *text
	name string
	// node is nil when value does not depend on the request.
	node  node
	value any
}

// render implements node. Fields whose keys depend on the request come last: where two
// get the same key, the last one in the order of the keys as written stays. With
// Kyverno it is any of them.
func (o *object) render(ctx context.Context, r *rendering) (any, error) {
	if err := r.run.Spend(ctx, 1, fieldBytes*len(o.base)); err != nil {
		return nil, &Error{Err: err}
	}
	result := maps.Clone(o.base)
	var renamed []member
	for _, f := range o.fields {
		if f.node != nil {
			value, err := f.node.render(ctx, r)
			if err != nil {
				return nil, err
			}
			f.value = value
		}
		if f.key == nil {
			result[f.name] = f.value
			continue
		}
		name, err := f.key.render(ctx, r)
		if err != nil {
			return nil, err
		}
		if f.name, err = f.key.keyName(f.name, name); err != nil {
			return nil, err
		}
		renamed = append(renamed, f)
	}
	for _, f := range renamed {
		result[f.name] = f.value
	}
	return result, nil
}

// keyName returns what a key becomes. It stays as it was written when its variable is
// null, as in Kyverno's traverseObject.
func (t *text) keyName(written string, value any) (string, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case nil:
		return written, nil
	default:
		return "", &Error{Path: t.path, Err: fmt.Errorf("the key %q becomes %s, but must be a string",
			excerpt(written), kind(value))}
	}
}

// kind names the type of a value.
func kind(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case *jmespath.Reference:
		return "an expression"
	default:
		return fmt.Sprintf("a %T", value)
	}
}

// broken is a part of a value that cannot be rendered.
type broken struct{ err *Error }

// render implements node.
func (b *broken) render(context.Context, *rendering) (any, error) { return nil, b.err }
