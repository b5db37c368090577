// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"slices"

	upstream "github.com/kyverno/go-jmespath"
)

func isCurrent(tree upstream.ASTNode) bool {
	return tree.NodeType == upstream.ASTIdentity || tree.NodeType == upstream.ASTCurrentNode
}

// appendRoots adds the fields of the root that a tree names, each once. It is called
// for trees that a builder has found to be of bounded depth, but for the chains.
func appendRoots(roots []string, tree upstream.ASTNode) []string {
	switch tree.NodeType {
	case upstream.ASTField:
		if name, ok := tree.Value.(string); ok && !slices.Contains(roots, name) {
			roots = append(roots, name)
		}
	case upstream.ASTSubexpression, upstream.ASTIndexExpression, upstream.ASTPipe:
		same := isChain
		if tree.NodeType == upstream.ASTPipe {
			same = func(t upstream.ASTNodeType) bool { return t == upstream.ASTPipe }
		}
		for _, link := range spine(tree, same) {
			if !isCurrent(link) {
				return appendRoots(roots, link)
			}
		}
	case upstream.ASTOrExpression, upstream.ASTAndExpression:
		for _, operand := range spine(tree, func(t upstream.ASTNodeType) bool { return t == tree.NodeType }) {
			roots = appendRoots(roots, operand)
		}
	case upstream.ASTFlatten, upstream.ASTProjection, upstream.ASTValueProjection, upstream.ASTFilterProjection:
		return appendRoots(roots, tree.Children[0])
	case upstream.ASTExpRef:
		// It is evaluated over what the function gives it.
	default:
		for _, child := range tree.Children {
			roots = appendRoots(roots, child)
		}
	}
	return roots
}

// needed returns the field of the root that must be there, or "". Only paths fail with a
// field that is missing: for all else, projections and pipes too, it is null.
func needed(tree upstream.ASTNode) string {
	for {
		switch tree.NodeType {
		case upstream.ASTField:
			name, _ := tree.Value.(string)
			return name
		case upstream.ASTSubexpression, upstream.ASTIndexExpression:
			tree = tree.Children[0]
		default:
			return ""
		}
	}
}

// leading returns the field of the root with which a tree begins, or "".
func leading(tree upstream.ASTNode) string {
	for {
		switch tree.NodeType {
		case upstream.ASTField:
			name, _ := tree.Value.(string)
			return name
		case upstream.ASTFunctionExpression, upstream.ASTExpRef:
			return ""
		}
		if len(tree.Children) == 0 {
			return ""
		}
		tree = tree.Children[0]
	}
}
