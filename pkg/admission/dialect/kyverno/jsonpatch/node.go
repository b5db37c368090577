// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"context"
	"maps"
	"slices"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

// A node is a part of a form that depends on the request.
type node interface {
	render(ctx context.Context, r *rendering) (any, error)
}

// rendering is what all nodes of a form are given for one request.
type rendering struct {
	run    *jmespath.Run
	values []any
}

// whole is a variable that stands for a scalar without quotes.
type whole struct {
	variable int
	// json says that it stands in JSON, and not in YAML.
	json bool
}

// render implements node.
func (w *whole) render(ctx context.Context, r *rendering) (any, error) {
	value := r.values[w.variable]
	if text, ok := value.(string); ok {
		if w.json {
			return readJSON(ctx, r.run, text)
		}
		return readYAML(ctx, r.run, text)
	}
	size, ok := patch.Size(value, maxText, maxDepth)
	if !ok {
		return nil, errTooLarge
	}
	return value, r.run.Spend(ctx, 1, size)
}

// mixed is a scalar of which variables are a part, or one in quotes.
type mixed struct {
	pieces []piece
	// plain says that the scalar is without quotes.
	plain bool
}

// render implements node.
func (m *mixed) render(ctx context.Context, r *rendering) (any, error) {
	var text []byte
	for _, p := range m.pieces {
		if p.literal != "" {
			text = append(text, p.literal...)
			continue
		}
		value, err := r.text(ctx, p.variable)
		if err != nil {
			return nil, err
		}
		if len(text)+len(value) > maxText {
			return nil, errTooLarge
		}
		text = append(text, value...)
	}
	if err := r.run.Spend(ctx, 1, len(text)); err != nil {
		return nil, err
	}
	if m.plain {
		return readYAML(ctx, r.run, string(text))
	}
	return string(text), nil
}

// text returns the text of a value: that of what is none is its JSON.
func (r *rendering) text(ctx context.Context, variable int) (string, error) {
	value := r.values[variable]
	if text, ok := value.(string); ok {
		return text, nil
	}
	return template.JSON(ctx, r.run, value)
}

// listNode is a list of which some items depend on the request.
type listNode struct {
	base  []any
	items map[int]node
}

// render implements node.
func (l *listNode) render(ctx context.Context, r *rendering) (any, error) {
	result := slices.Clone(l.base)
	for i := range result {
		n, ok := l.items[i]
		if !ok {
			continue
		}
		value, err := n.render(ctx, r)
		if err != nil {
			return nil, err
		}
		result[i] = value
	}
	return result, nil
}

// objectNode is an object of which some fields depend on the request.
type objectNode struct {
	base map[string]any
	// fields are in the order of their keys.
	fields []fieldNode
}

type fieldNode struct {
	key  string
	node node
}

// render implements node.
func (o *objectNode) render(ctx context.Context, r *rendering) (any, error) {
	result := maps.Clone(o.base)
	for _, f := range o.fields {
		value, err := f.node.render(ctx, r)
		if err != nil {
			return nil, err
		}
		result[f.key] = value
	}
	return result, nil
}
