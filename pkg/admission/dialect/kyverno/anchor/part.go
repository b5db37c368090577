// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor

import (
	"context"
	"maps"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor/pattern"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// part is a part of an overlay.
type part interface {
	traits() traits
	// resolve returns the part with the values of its variables.
	resolve(ctx context.Context, r *rendering) (part, error)
}

// rendering is what variables are replaced with.
type rendering struct {
	run   *jmespath.Run
	scope jmespath.Scope
}

// traits are what there is in a part, as deep as it goes.
type traits struct{ anchored, gated, dynamic bool }

func (t *traits) add(other traits) {
	t.anchored = t.anchored || other.anchored
	t.gated = t.gated || other.gated
	t.dynamic = t.dynamic || other.dynamic
}

// literal is a part that is the same for all requests and objects.
type literal struct {
	value any
	// size is about what the value takes.
	size int
	// written says that the value is that of the overlay itself.
	written bool
}

func (l *literal) traits() traits                                    { return traits{} }
func (l *literal) resolve(context.Context, *rendering) (part, error) { return l, nil }

// broken is a part that cannot be applied.
type broken struct{ err error }

func (b *broken) traits() traits { return traits{dynamic: true} }
func (b *broken) resolve(context.Context, *rendering) (part, error) {
	return nil, b.err
}

// mapping is a map with anchors or variables in it.
type mapping struct {
	path       []string
	conditions []condition // global ones first
	// adds are the fields of +(key).
	adds []field
	// constants are the fields that are literals, and size what they take.
	constants map[string]any
	size      int
	// fields are the other fields without anchor.
	fields []field
	// emptied says that a field had nothing to merge.
	emptied bool
	is      traits
}

type field struct {
	key  string
	part part
}

// condition is (key) or <(key).
type condition struct {
	key    string
	global bool
	// path leads to the key.
	path []string
	// pattern is nil when the key only has to be there.
	pattern *pattern.Pattern
	// size is that of the pattern.
	size int
	// source has the variables of the value, if it has any, and is nil once they are
	// replaced.
	source *variable
}

func (m *mapping) traits() traits { return m.is }

// put adds a field.
func (m *mapping) put(key string, p part) {
	if m.empty(p) {
		return
	}
	constant, ok := p.(*literal)
	if !ok {
		m.fields = append(m.fields, field{key, p})
		return
	}
	if m.constants == nil {
		m.constants = map[string]any{}
	}
	m.constants[key] = constant.value
	m.size += constant.size + fieldBytes
}

// finish returns the map once all is put into it: a literal, if nothing else is in it.
func (m *mapping) finish() part {
	for i := range m.conditions {
		c := &m.conditions[i]
		m.is.add(traits{anchored: true, gated: c.global, dynamic: c.source != nil})
	}
	for _, f := range m.adds {
		m.is.add(f.part.traits())
		m.is.anchored = true
	}
	for _, f := range m.fields {
		m.is.add(f.part.traits())
	}
	if m.is.anchored || m.is.dynamic {
		return m
	}
	if m.emptied && len(m.constants) == 0 {
		return nothing{}
	}
	if m.constants == nil {
		m.constants = map[string]any{}
	}
	return &literal{value: m.constants, size: m.size}
}

func (m *mapping) resolve(ctx context.Context, r *rendering) (part, error) {
	if !m.is.dynamic {
		return m, nil
	}
	resolved := &mapping{path: m.path, constants: maps.Clone(m.constants), size: m.size}
	for i := range m.conditions {
		c := &m.conditions[i]
		if c.source == nil {
			resolved.conditions = append(resolved.conditions, *c)
			continue
		}
		value, err := c.source.render(ctx, r)
		if err != nil {
			return nil, err
		}
		b := &builder{}
		b.condition(resolved, c.global, c.key, value, c.path)
		if len(b.faults) > 0 {
			return nil, b.err()
		}
	}
	for _, f := range m.adds {
		p, err := f.part.resolve(ctx, r)
		if err != nil {
			return nil, err
		}
		if !resolved.empty(p) {
			resolved.adds = append(resolved.adds, field{f.key, p})
		}
	}
	for _, f := range m.fields {
		p, err := f.part.resolve(ctx, r)
		if err != nil {
			return nil, err
		}
		resolved.put(f.key, p)
	}
	return resolved.finish(), nil
}
