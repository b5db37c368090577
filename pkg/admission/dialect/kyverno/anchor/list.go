// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor

import (
	"context"
	"errors"
	"fmt"
)

// list is a list with anchors or variables in it.
type list struct {
	path     []string
	elements []part
	is       traits
}

func (l *list) traits() traits { return l.is }

var errListInList = errors.New("there are anchors in a list that is an element of a list, where nothing is merged")

// finish returns the list once all is in it: a literal, if nothing else is in it.
func (l *list) finish() (part, error) {
	for _, p := range l.elements {
		l.is.add(p.traits())
		if _, ok := p.(*list); ok && p.traits().anchored {
			return nil, fmt.Errorf("%s: %w", dotted(l.path), errListInList)
		}
	}
	if l.is.anchored || l.is.dynamic {
		return l, nil
	}
	values, size := make([]any, 0, len(l.elements)), 0
	for _, p := range l.elements {
		if constant, ok := p.(*literal); ok {
			values = append(values, constant.value)
			size += constant.size + itemBytes
		}
	}
	return &literal{value: values, size: size}, nil
}

func (l *list) resolve(ctx context.Context, r *rendering) (part, error) {
	if !l.is.dynamic {
		return l, nil
	}
	resolved := &list{path: l.path, elements: make([]part, 0, len(l.elements))}
	for _, p := range l.elements {
		element, err := p.resolve(ctx, r)
		if err != nil {
			return nil, err
		}
		if _, empty := element.(nothing); !empty {
			resolved.elements = append(resolved.elements, element)
		}
	}
	if len(resolved.elements) == 0 {
		return nothing{}, nil
	}
	return resolved.finish()
}
