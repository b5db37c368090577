// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/custom"
)

// Walk visits the objects of this layer among those of the base that it does not
// replace. What it makes of an object it forgets again.
func (v *view) Walk(ctx context.Context, selection cluster.Selection, visit cluster.Visit) error {
	mapping, err := selection.Mapping(v.mapper)
	if err != nil {
		return err
	}
	if selection.Name != "" || selection.Selector == nil {
		objects, err := v.Objects(ctx, selection)
		if err != nil {
			return err
		}
		return cluster.WalkHeld(objects, visit)
	}
	m := merged{view: v, kind: selection.Kind, visit: visit, replacing: len(v.byKind[selection.Kind.GroupKind()])}
	for _, one := range v.byKind[selection.Kind.GroupKind()] {
		if selects(selection, one.given) {
			m.own = append(m.own, one)
		}
	}
	slices.SortFunc(m.own, func(a, b *held) int { return cluster.ComparePaths(a.given, b.given) })
	asked, there, err := v.askedBelow(selection, mapping.Scope)
	if err != nil {
		return err
	}
	if there {
		err = v.base.Walk(ctx, asked, func(one cluster.Visited) (bool, error) { return m.below(ctx, one) })
	}
	if err != nil || m.ended {
		return err
	}
	return m.before(ctx, nil)
}

// merged is a walk over two layers.
type merged struct {
	view      *view
	kind      schema.GroupVersionKind
	visit     cluster.Visit
	own       []*held // that have not been visited, in order
	replacing int     // so many objects of the base that are to come, at most
	ended     bool    // by who visits, or with an error
}

// below visits an object of the base, unless it is replaced, after those of the layer
// that come before it.
func (m *merged) below(ctx context.Context, one cluster.Visited) (bool, error) {
	if _, replaced := m.view.byKey[keyOf(one.Object)]; replaced {
		m.replacing--
		return true, nil
	}
	if err := m.before(ctx, &one); err != nil || m.ended {
		return false, err
	}
	m.known(&one)
	if _, redefined := m.view.definition[m.kind.GroupKind()]; redefined {
		return m.made(ctx, &held{given: one.Object}, one)
	}
	return m.show(one)
}

// before visits the objects of the layer that come before one of the base, or all that
// are left.
func (m *merged) before(ctx context.Context, next *cluster.Visited) error {
	for len(m.own) > 0 && !m.ended && (next == nil || cluster.ComparePaths(m.own[0].given, next.Object) < 0) {
		first := m.own[0]
		m.own = m.own[1:]
		one := cluster.Visited{}
		if next != nil {
			one.Left, one.More = next.Left, next.More
		}
		m.known(&one)
		if next != nil {
			one.Left++ // next itself
		}
		if _, err := m.made(ctx, first, one); err != nil {
			return err
		}
	}
	return nil
}

// known makes what the base knows of its own objects what is known of both layers.
func (m *merged) known(one *cluster.Visited) {
	if m.replacing > 0 && one.Left > 0 {
		one.More, one.Left = true, max(0, one.Left-m.replacing)
	}
	one.Left += len(m.own)
}

// made visits what an object is in the kind that is asked for.
func (m *merged) made(ctx context.Context, from *held, one cluster.Visited) (bool, error) {
	if one.Object = from.read.Load().in(m.kind); one.Object != nil {
		return m.show(one)
	}
	if err := ctx.Err(); err != nil { // there may be very many objects
		m.ended = true
		return false, err
	}
	object, err := m.view.Stored(from.given, m.kind)
	if err != nil {
		m.ended = true
		return false, fmt.Errorf("%s: %w", describe(keyOf(from.given)), err)
	}
	if one.Object = object; object != from.given {
		one.Bytes += custom.Size(object.Object)
	}
	return m.show(one)
}

func (m *merged) show(one cluster.Visited) (bool, error) {
	more, err := m.visit(one)
	m.ended = err != nil || !more
	return more, err
}
