// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

// change is what is done at a path.
type change struct {
	// creates says that missing parents are made.
	creates bool
	// tolerant says that there is nothing to do where a parent is missing.
	tolerant bool
	// leaf changes the last parent, an object or a list, and returns what stands in its
	// place.
	leaf func(parent any, token string) (any, error)
}

// change changes what is at a path.
func (a *application) change(path []string, c *change) error {
	root, err := a.at(a.root, path, c)
	if err != nil {
		return err
	}
	object, ok := root.(map[string]any)
	if !ok {
		return errNoObject
	}
	a.root = object
	return nil
}

// at changes what is at a path below parent, and returns what stands in its place: the
// parent itself when it is changed in place, or not at all.
func (a *application) at(parent any, path []string, c *change) (any, error) {
	switch p := parent.(type) {
	case map[string]any:
		if len(path) == 1 {
			return c.leaf(p, path[0])
		}
		return a.inObject(p, path, c)
	case []any:
		if len(path) == 1 {
			return c.leaf(p, path[0])
		}
		return a.inList(p, path, c)
	}
	return c.missing(parent)
}

// missing returns what stands in the place of a value that can have no fields.
func (c *change) missing(value any) (any, error) {
	if c.tolerant {
		return value, nil
	}
	return nil, errNoParent
}

func (a *application) inObject(parent map[string]any, path []string, c *change) (any, error) {
	child := parent[path[0]]
	if child == nil {
		if !c.creates {
			return c.missing(parent)
		}
		made, err := a.made(path[1])
		if err != nil {
			return nil, err
		}
		child = made
	}
	changed, err := a.at(child, path[1:], c)
	if err != nil {
		return nil, err
	}
	if same(parent[path[0]], changed) {
		return parent, nil
	}
	parent = a.owned.object(parent)
	parent[path[0]] = changed
	return parent, nil
}

func (a *application) inList(parent []any, path []string, c *change) (any, error) {
	index, err := existing(parent, path[0])
	if err != nil || parent[index] == nil {
		if c.creates {
			return a.intoList(parent, path, c)
		}
		return c.missing(parent)
	}
	changed, err := a.at(parent[index], path[1:], c)
	if err != nil {
		return nil, err
	}
	if same(parent[index], changed) {
		return parent, nil
	}
	parent = a.owned.list(parent)
	parent[index] = changed
	return parent, nil
}

// intoList puts what stands at the rest of the path into a list that has nothing at an
// index, or null, in front of which it is put then. As in the library's
// ensurePathExists, here an index may be beyond the end of a list.
func (a *application) intoList(parent []any, path []string, c *change) (any, error) {
	index, err := strconv.Atoi(path[0])
	if err != nil {
		return nil, errNoParent
	}
	parent, err = a.padded(parent, index)
	if err != nil {
		return nil, err
	}
	made, err := a.made(path[1])
	if err != nil {
		return nil, err
	}
	child, err := a.at(made, path[1:], c)
	if err != nil {
		return nil, err
	}
	return a.insert(parent, path[0], child)
}

// made returns a new parent for a name or an index: a list when it looks like an index.
func (a *application) made(token string) (any, error) {
	index, err := strconv.Atoi(token)
	switch {
	case err != nil && token != "-":
		return map[string]any{}, nil
	case index < -1:
		return nil, fmt.Errorf("the list is missing, and %d is no index of an empty one", index)
	}
	return a.padded(nil, index)
}

// padded returns a list that is long enough to put something at an index.
func (a *application) padded(list []any, index int) ([]any, error) {
	missing := index - len(list)
	if missing <= 0 {
		return list, nil
	}
	const null = len(`null,`)
	if missing > maxPadding {
		return nil, fmt.Errorf("index %d is more than %d beyond the end of the list", index, maxPadding)
	}
	if a.left -= missing * null; a.left < 0 {
		return nil, errTooLarge
	}
	list = slices.Grow(a.owned.list(list), missing+1)
	return a.owned.keep(append(list, make([]any, missing)...)), nil
}

// add puts a value into an object, or between the elements of a list.
func (a *application) add(value any) func(any, string) (any, error) {
	return func(parent any, token string) (any, error) {
		switch p := parent.(type) {
		case map[string]any:
			return a.set(p, token, value), nil
		case []any:
			return a.insert(p, token, value)
		}
		return nil, errNoParent
	}
}

func (a *application) set(parent map[string]any, name string, value any) any {
	if old, ok := parent[name]; ok && patch.Equal(old, value) {
		return parent
	}
	parent = a.owned.object(parent)
	parent[name] = value
	return parent
}

// insert puts a value in front of the element at an index: -1 is behind the last one.
func (a *application) insert(parent []any, token string, value any) (any, error) {
	index := len(parent)
	if token != "-" {
		var err error
		if index, err = strconv.Atoi(token); err != nil {
			return nil, fmt.Errorf("%q is no index of a list", excerpt(token))
		}
		if index < 0 {
			index += len(parent) + 1
		}
	}
	if index < 0 || index > len(parent) {
		return nil, fmt.Errorf("index %s is beyond the list, which has %d elements", token, len(parent))
	}
	return a.owned.keep(slices.Insert(a.owned.list(parent), index, value)), nil
}

// replace puts a value in the place of another.
func (a *application) replace(value any) func(any, string) (any, error) {
	return func(parent any, token string) (any, error) {
		switch p := parent.(type) {
		case map[string]any:
			if _, ok := p[token]; !ok {
				return nil, errMissing
			}
			return a.set(p, token, value), nil
		case []any:
			index, err := existing(p, token)
			if err != nil {
				return nil, err
			}
			if patch.Equal(p[index], value) {
				return p, nil
			}
			p = a.owned.list(p)
			p[index] = value
			return p, nil
		}
		return nil, errNoParent
	}
}

// remove takes a value away. There is nothing to do when it is missing; only what is no
// index of a list is an error.
func (a *application) remove(parent any, token string) (any, error) {
	switch p := parent.(type) {
	case map[string]any:
		if _, ok := p[token]; !ok {
			return p, nil
		}
		p = a.owned.object(p)
		delete(p, token)
		return p, nil
	case []any:
		if _, err := strconv.Atoi(token); err != nil {
			return nil, fmt.Errorf("%q is no index of a list", excerpt(token))
		}
		index, err := existing(p, token)
		if err != nil {
			return p, nil //nolint:nilerr // beyond the list
		}
		return slices.Delete(a.owned.list(p), index, index+1), nil
	}
	return nil, errNoParent
}

// existing returns the index of an element of a list: -1 is the last one.
func existing(list []any, token string) (int, error) {
	index, err := strconv.Atoi(token)
	if err != nil {
		return 0, fmt.Errorf("%q is no index of a list", excerpt(token))
	}
	if index < 0 {
		index += len(list)
	}
	if index < 0 || index >= len(list) {
		return 0, fmt.Errorf("index %s is beyond the list, which has %d elements", token, len(list))
	}
	return index, nil
}
