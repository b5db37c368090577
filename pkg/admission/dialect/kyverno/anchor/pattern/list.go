// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern

import "slices"

// list prepares a list by what its first element is, as validateArray of Kyverno's
// pkg/engine/validate reads it: unless that is a list, the others do not matter. A list
// without elements matches nothing.
func (c *compiler) list(pattern []any, depth int) (node, error) {
	nodes, err := c.nodes(pattern, depth-1)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nothing{}, nil
	}
	if first, ok := nodes[0].(leaf); ok {
		return eachScalar(first), nil
	}
	if first, ok := nodes[0].(*object); ok {
		return eachObject{first}, nil
	}
	return inOrder{nodes}, nil
}

func (c *compiler) nodes(patterns []any, depth int) ([]node, error) {
	nodes := make([]node, 0, len(patterns))
	for _, pattern := range patterns {
		compiled, err := c.node(pattern, depth, outside)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, compiled)
	}
	return nodes, nil
}

// existence prepares the pattern of ^(key), which matches nothing unless it is a list of
// objects.
func (c *compiler) existence(pattern any, depth int) (node, error) {
	list, ok := pattern.([]any)
	if !ok {
		_, err := c.node(pattern, depth, outside)
		return nothing{}, err
	}
	nodes, err := c.nodes(list, depth-1)
	if err != nil {
		return nil, err
	}
	for _, compiled := range nodes {
		if _, ok := compiled.(*object); !ok {
			return nothing{}, nil
		}
	}
	return hasEach{nodes}, nil
}

// nothing matches no value.
type nothing struct{}

func (nothing) match(any) outcome { return fails }

// eachScalar matches lists of which all elements match one scalar.
type eachScalar struct{ scalar scalar }

func (e eachScalar) match(value any) outcome {
	if list, ok := value.([]any); ok && all(e.scalar, list) {
		return holds
	}
	return fails
}

// eachObject matches lists of which all elements match one object, but for those that
// its conditions leave out, which must not be all of them.
type eachObject struct{ object *object }

func (e eachObject) match(value any) outcome {
	list, ok := value.([]any)
	if !ok {
		return fails
	}
	var seen tally
	for _, element := range list {
		if !seen.add(e.object.match(element)) {
			return fails
		}
	}
	return seen.outcome()
}

// hasEach matches lists that have an element for each of the patterns.
type hasEach struct{ nodes []node }

func (h hasEach) match(value any) outcome {
	list, ok := value.([]any)
	if !ok {
		return fails
	}
	for _, node := range h.nodes {
		if !slices.ContainsFunc(list, func(element any) bool { return node.match(element) == holds }) {
			return fails
		}
	}
	return holds
}

// inOrder matches lists that begin with elements that match one pattern each.
type inOrder struct{ nodes []node }

func (o inOrder) match(value any) outcome {
	list, ok := value.([]any)
	if !ok || len(list) < len(o.nodes) {
		return fails
	}
	var seen tally
	for i, node := range o.nodes {
		if !seen.add(node.match(list[i])) {
			return fails
		}
	}
	return seen.outcome()
}

// tally counts what the elements of a list are.
type tally struct{ held, skipped bool }

// add counts an element. It returns false for one that fails.
func (t *tally) add(element outcome) bool {
	switch element {
	case holds:
		t.held = true
	case skips, empty:
		t.skipped = true
	case fails:
		return false
	}
	return true
}

func (t *tally) outcome() outcome {
	if t.skipped && !t.held {
		return empty
	}
	return holds
}
