// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"errors"
	"fmt"
	"slices"

	upstream "github.com/kyverno/go-jmespath"
)

// A builder makes nodes from the syntax tree of the library. Chains of the same
// operator, which nest to the left in that tree, become one node: the depth of the nodes
// is what the user sees as nesting.
type builder struct {
	functions map[string]*Function
	mistake   *CallError // the first one
}

// mistaken notes a call that can only fail, and returns a node that does.
func (b *builder) mistaken(text string) node {
	mistake := &CallError{text: text}
	if b.mistake == nil {
		b.mistake = mistake
	}
	return &failing{err: mistake}
}

// failing is a call that can only fail.
type failing struct{ err error }

func (f *failing) eval(context.Context, *Run, any) (any, error) { return nil, f.err }

func (b *builder) build(tree upstream.ASTNode, depth int) (node, error) {
	if depth > maxDepth {
		return nil, errTooDeep()
	}
	switch tree.NodeType {
	case upstream.ASTLiteral:
		if deeper(tree.Value, maxDepth) {
			return nil, errTooDeep()
		}
		return &literal{value: tree.Value}, nil
	case upstream.ASTIdentity, upstream.ASTCurrentNode:
		return current{}, nil
	case upstream.ASTField, upstream.ASTIndex, upstream.ASTSubexpression, upstream.ASTIndexExpression:
		return b.buildChain(tree, depth)
	case upstream.ASTOrExpression, upstream.ASTAndExpression, upstream.ASTPipe:
		return b.buildOperands(tree, depth)
	case upstream.ASTNotExpression:
		operand, err := b.build(tree.Children[0], depth+1)
		return &not{operand: operand}, err
	case upstream.ASTComparator:
		return b.buildComparison(tree, depth)
	case upstream.ASTMultiSelectList, upstream.ASTMultiSelectHash:
		return b.buildSelection(tree, depth)
	case upstream.ASTFunctionExpression:
		return b.buildCall(tree, depth)
	case upstream.ASTExpRef:
		return nil, errors.New("an expression reference (&...) is possible only as an argument of a function")
	case upstream.ASTSlice:
		return buildSlice(tree)
	case upstream.ASTFlatten, upstream.ASTProjection, upstream.ASTValueProjection, upstream.ASTFilterProjection:
		return b.buildProjection(tree, depth)
	case upstream.ASTEmpty, upstream.ASTKeyValPair:
	}
	return nil, errors.New("brackets hold something that is neither an index nor a list of expressions")
}

// spine returns the operands of a chain of the same operators, which nest to the left.
func spine(tree upstream.ASTNode, same func(upstream.ASTNodeType) bool) []upstream.ASTNode {
	var operands []upstream.ASTNode
	for same(tree.NodeType) {
		operands = append(operands, tree.Children[1])
		tree = tree.Children[0]
	}
	operands = append(operands, tree)
	slices.Reverse(operands)
	return operands
}

func isChain(t upstream.ASTNodeType) bool {
	return t == upstream.ASTSubexpression || t == upstream.ASTIndexExpression
}

func (b *builder) buildChain(tree upstream.ASTNode, depth int) (node, error) {
	var parts []node
	for _, link := range spine(tree, isChain) {
		var part node
		var err error
		switch link.NodeType {
		case upstream.ASTIdentity, upstream.ASTCurrentNode:
			continue
		case upstream.ASTField:
			name, _ := link.Value.(string)
			parts = appendStep(parts, step{name: name, missing: &NotFoundError{Key: name}})
			continue
		case upstream.ASTIndex:
			index, _ := link.Value.(int)
			parts = appendStep(parts, step{index: index})
			continue
		default:
			part, err = b.build(link, depth+1)
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	switch len(parts) {
	case 0:
		return current{}, nil
	case 1:
		return parts[0], nil
	}
	return &chain{parts: parts}, nil
}

// appendStep makes steps that follow each other one path.
func appendStep(parts []node, s step) []node {
	if len(parts) > 0 {
		if p, ok := parts[len(parts)-1].(*path); ok {
			p.steps = append(p.steps, s)
			return parts
		}
	}
	return append(parts, &path{steps: []step{s}})
}

func (b *builder) buildOperands(tree upstream.ASTNode, depth int) (node, error) {
	links := spine(tree, func(t upstream.ASTNodeType) bool { return t == tree.NodeType })
	if tree.NodeType == upstream.ASTPipe && isCurrent(links[0]) {
		// So that a root is asked for what stands to the right only.
		links = links[1:]
	}
	operands, err := b.buildAll(links, depth)
	switch {
	case err != nil:
		return nil, err
	case tree.NodeType == upstream.ASTOrExpression:
		return &or{operands: operands}, nil
	case tree.NodeType == upstream.ASTAndExpression:
		return &and{operands: operands}, nil
	}
	return &pipe{operands: operands}, nil
}

func (b *builder) buildAll(trees []upstream.ASTNode, depth int) ([]node, error) {
	nodes := make([]node, len(trees))
	for i, tree := range trees {
		n, err := b.build(tree, depth+1)
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}

func (b *builder) buildComparison(tree upstream.ASTNode, depth int) (node, error) {
	operands, err := b.buildAll(tree.Children, depth)
	if err != nil {
		return nil, err
	}
	operator := fmt.Sprint(tree.Value)
	switch operator {
	case "tEQ", "tNE":
		return &equality{left: operands[0], right: operands[1], negated: operator == "tNE"}, nil
	case "tLT":
		return &order{left: operands[0], right: operands[1], less: true}, nil
	case "tLTE":
		return &order{left: operands[0], right: operands[1], less: true, equal: true}, nil
	case "tGT":
		return &order{left: operands[0], right: operands[1], greater: true}, nil
	case "tGTE":
		return &order{left: operands[0], right: operands[1], greater: true, equal: true}, nil
	}
	return nil, fmt.Errorf("unknown comparison %s", readable(operator))
}

func (b *builder) buildSelection(tree upstream.ASTNode, depth int) (node, error) {
	if tree.NodeType == upstream.ASTMultiSelectList {
		items, err := b.buildAll(tree.Children, depth)
		return &list{items: items}, err
	}
	o := &object{}
	for _, pair := range tree.Children {
		key, ok := pair.Value.(string)
		if !ok || len(pair.Children) != 1 {
			return nil, errors.New("an object of the expression has a key that is no name")
		}
		value, err := b.build(pair.Children[0], depth+1)
		if err != nil {
			return nil, err
		}
		o.keys = append(o.keys, key)
		o.values = append(o.values, value)
	}
	return o, nil
}

func (b *builder) buildCall(tree upstream.ASTNode, depth int) (node, error) {
	name, ok := tree.Value.(string)
	if !ok {
		return nil, errors.New("brackets of a call do not follow the name of a function")
	}
	f := b.functions[name]
	if f == nil {
		return b.mistaken(fmt.Sprintf("unknown function %q", name)), nil
	}
	if text := f.checkCount(len(tree.Children)); text != "" {
		return b.mistaken(text), nil
	}
	c := &call{function: f, args: make([]node, len(tree.Children))}
	for i, arg := range tree.Children {
		quoted := arg.NodeType == upstream.ASTExpRef
		if quoted {
			arg = arg.Children[0]
		}
		n, err := b.build(arg, depth+1)
		if err != nil {
			return nil, err
		}
		if quoted {
			n = &reference{value: &Reference{node: n}}
		}
		c.args[i] = n
	}
	return c, nil
}

func buildSlice(tree upstream.ASTNode) (node, error) {
	parts, ok := tree.Value.([]*int)
	if !ok || len(parts) != 3 {
		return nil, errors.New("a slice has other than three parts")
	}
	s := &slice{start: parts[0], stop: parts[1], step: 1}
	if parts[2] != nil {
		s.step = *parts[2]
	}
	return s, nil
}

func (b *builder) buildProjection(tree upstream.ASTNode, depth int) (node, error) {
	children, err := b.buildAll(tree.Children, depth)
	if err != nil {
		return nil, err
	}
	left := children[0]
	switch tree.NodeType {
	case upstream.ASTFlatten:
		return &flatten{left: left}, nil
	case upstream.ASTValueProjection:
		return &values{left: left, right: children[1], calls: calls(tree.Children[1])}, nil
	case upstream.ASTFilterProjection:
		return &filter{left: left, right: children[1], condition: children[2]}, nil
	default:
		return &projection{left: left, right: children[1]}, nil
	}
}

// calls says whether a function is called anywhere in a tree.
func calls(tree upstream.ASTNode) bool {
	return tree.NodeType == upstream.ASTFunctionExpression || slices.ContainsFunc(tree.Children, calls)
}

// deeper says whether a value is nested deeper than a limit.
func deeper(value any, limit int) bool {
	if limit < 0 {
		return true
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if deeper(item, limit-1) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if deeper(item, limit-1) {
				return true
			}
		}
	}
	return false
}
