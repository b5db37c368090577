// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// collections returns the functions of lists and objects.
func collections() []jmespath.Function {
	either := jmespath.Object | jmespath.Array
	return []jmespath.Function{
		{Name: "label_match", Params: params(jmespath.Object, jmespath.Object), Call: labelMatch},
		{Name: "lookup", Params: params(either, jmespath.String|jmespath.Number), Call: lookup},
		{Name: "items", Params: params(either, jmespath.String, jmespath.String), Call: items},
		{Name: "object_from_lists", Params: params(jmespath.Array, jmespath.Array), Call: objectFromLists},
	}
}

// labelMatch says whether all fields of the first object are in the second.
func labelMatch(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
	wanted, err := argument[map[string]any](args, 0)
	if err != nil {
		return nil, err
	}
	labels, err := argument[map[string]any](args, 1)
	if err != nil {
		return nil, err
	}
	return contained(ctx, run, wanted, labels, 0)
}

// lookup returns a field of an object or an element of a list, and null when it does not
// have it.
func lookup(_ context.Context, _ *jmespath.Run, args []any) (any, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("there are %d arguments, not 2", len(args))
	}
	switch from := args[0].(type) {
	case map[string]any:
		key, ok := args[1].(string)
		if !ok {
			return nil, fmt.Errorf("argument 2 is %s: the fields of an object have strings as keys", typeName(args[1]))
		}
		return from[key], nil
	case []any:
		if _, ok := fraction(args[1]); !ok {
			return nil, fmt.Errorf("argument 2 is %s: the elements of a list have numbers", typeName(args[1]))
		}
		index, ok := integer(args[1])
		if !ok {
			return nil, fmt.Errorf("argument 2, %v, is not an integer", args[1])
		}
		if index < 0 || index >= int64(len(from)) {
			return nil, nil //nolint:nilnil // This nil is the null of JSON.
		}
		return from[index], nil
	default:
		return nil, fmt.Errorf("argument 1 is %s, neither an object nor a list", typeName(args[0]))
	}
}

// items returns the fields of an object, sorted by key, or the elements of a list as
// objects of two fields. When both are to have the same name, there is only the value.
func items(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
	key, err := argument[string](args, 1)
	if err != nil {
		return nil, err
	}
	value, err := argument[string](args, 2)
	if err != nil {
		return nil, err
	}
	switch from := args[0].(type) {
	case map[string]any:
		if err := run.Spend(ctx, len(from), len(from)*bytesPerObject); err != nil {
			return nil, err
		}
		list := make([]any, 0, len(from))
		for _, name := range slices.Sorted(maps.Keys(from)) {
			list = append(list, pair(key, name, value, from[name]))
		}
		return list, nil
	case []any:
		if err := run.Spend(ctx, len(from), len(from)*bytesPerObject); err != nil {
			return nil, err
		}
		list := make([]any, 0, len(from))
		for index, element := range from {
			list = append(list, pair(key, int64(index), value, element))
		}
		return list, nil
	default:
		return nil, fmt.Errorf("argument 1 is %s, neither an object nor a list", typeName(args[0]))
	}
}

func pair(key string, name any, value string, of any) map[string]any {
	object := map[string]any{key: name}
	object[value] = of
	return object
}

// objectFromLists returns an object of keys and values, and null for the keys that are
// left over. The last of equal keys counts.
func objectFromLists(ctx context.Context, run *jmespath.Run, args []any) (any, error) {
	keys, err := argument[[]any](args, 0)
	if err != nil {
		return nil, err
	}
	values, err := argument[[]any](args, 1)
	if err != nil {
		return nil, err
	}
	if err := run.Spend(ctx, len(keys), bytesPerObject+len(keys)*bytesPerItem); err != nil {
		return nil, err
	}
	object := make(map[string]any, len(keys))
	for i, key := range keys {
		name, ok := plain(key)
		if !ok {
			return nil, fmt.Errorf("element %d of argument 1 is %s, which cannot be a key", i, typeName(key))
		}
		object[name] = nil
		if i < len(values) {
			object[name] = values[i]
		}
	}
	return object, nil
}
