// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

// variable is a part of which nothing is known before its variables are replaced. The
// keys in their values may be anchors, as with Kyverno, which replaces variables first.
type variable struct {
	template *template.Template
	path     []string
}

func (v *variable) traits() traits { return traits{dynamic: true} }

func (v *variable) resolve(ctx context.Context, r *rendering) (part, error) {
	value, err := v.render(ctx, r)
	if err != nil {
		return nil, err
	}
	if isNothing(value) {
		return nothing{}, nil
	}
	b := &builder{}
	p := b.part(value, v.path)
	if len(b.faults) > 0 {
		return nil, b.err()
	}
	return p, nil
}

func (v *variable) render(ctx context.Context, r *rendering) (any, error) {
	value, err := v.template.Render(ctx, r.run, r.scope)
	if err == nil {
		return value, nil
	}
	if failed := (*template.Error)(nil); errors.As(err, &failed) {
		return nil, &template.Error{Path: slices.Concat(v.path, failed.Path), Expression: failed.Expression, Err: failed.Err}
	}
	return nil, err
}

// marked says whether a text may hold variables or references.
func marked(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "$(")
}

// hasMarkedKey says whether the keys of a map may hold variables.
func hasMarkedKey(object map[string]any) bool {
	for key := range object {
		if marked(key) {
			return true
		}
	}
	return false
}

// hasMarks says whether a value may hold variables.
func hasMarks(value any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch value := value.(type) {
	case string:
		return marked(value)
	case []any:
		return slices.ContainsFunc(value, func(element any) bool { return hasMarks(element, depth+1) })
	case map[string]any:
		if hasMarkedKey(value) {
			return true
		}
		for _, child := range value {
			if hasMarks(child, depth+1) {
				return true
			}
		}
	}
	return false
}

// template compiles a value with variables.
func (b *builder) template(value any, path []string) *template.Template {
	compiled, faults := b.templates.Value(value, template.Place{Rule: b.at.Rule, Path: slices.Concat(b.at.Path, path)})
	for _, fault := range faults {
		fault.Path = slices.Concat(path, fault.Path)
		b.faults = append(b.faults, fault)
	}
	for _, use := range compiled.Uses() {
		use.Path = slices.Concat(path, use.Path)
		b.uses = append(b.uses, use)
	}
	return compiled
}

// variable returns the part of a value with variables.
func (b *builder) variable(value any, path []string) part {
	compiled := b.template(value, path)
	static, ok := compiled.Static()
	if !ok {
		return &variable{template: compiled, path: path}
	}
	inner := builder{strict: true}
	p := inner.part(static, path)
	b.faults = append(b.faults, inner.faults...)
	if constant, ok := p.(*literal); ok {
		constant.written = false
	}
	return p
}
