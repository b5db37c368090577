// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// spoil returns unit, which was made of what can be read of a damaged object, as
// far as that may be relied on. A policy keeps what it matches, its failurePolicy
// and its need of a binding, and is an error for every request. A binding keeps
// what it binds; that params it may have given are unknown is an error.
func spoil(unit *policy.Unit, damage error) *policy.Unit {
	spoiled := *unit
	if unit.Policy != nil {
		p := *unit.Policy
		p.Program = unreadable(damage.Error())
		spoiled.Policy = &p
		return &spoiled
	}
	b := *unit.Binding
	if b.Params == nil {
		b.Params = &policy.Params{Err: damage}
	}
	spoiled.Binding = &b
	return &spoiled
}

// unreadable is the program of a policy that nobody can read.
type unreadable string

// Evaluate implements policy.Program.
func (p unreadable) Evaluate(context.Context, policy.Input) []verdict.Finding {
	return []verdict.Finding{{Kind: verdict.Misconfigured, Message: string(p)}}
}

// lost says that a binding is so damaged that the policy that it binds is not
// known.
func lost(unit *policy.Unit) bool { return unit.Binding != nil && unit.Binding.Policy.Name == "" }

// bindLost lets every lost binding bind all stored policies of the kind that it is for,
// with what else could be read of it, which is Deny and all requests as a rule.
// One of these policies it did bind, and leaving it out would put that one out of
// force without a word. A request that all of these policies would admit is
// admitted still; and nobody judges requests to delete or replace the object. One
// under a key that no object can have can be removed from etcd alone: its damage
// says how.
func (e *edit) bindLost() {
	c := e.catalog
	if len(c.lost) == 0 && len(c.spread) == 0 {
		return
	}
	wanted := map[policy.ID]standIn{}
	for _, binding := range c.lost {
		for id, other := range c.entries {
			if other.unit.Policy != nil && id.Kind == binding.Binding.Policy.Kind && c.fixed[id] == nil {
				stand := newStandIn(binding, id)
				wanted[stand.unit.ID] = stand
			}
		}
	}
	for id := range c.spread {
		if _, ok := wanted[id]; !ok {
			e.gone = append(e.gone, id)
		}
	}
	for id, stand := range wanted {
		if c.spread[id].of != stand.of {
			e.put = append(e.put, stand.unit)
		}
	}
	c.spread = wanted
}

// standIn stands for a lost binding, of one policy.
type standIn struct{ unit, of *policy.Unit }

// newStandIn returns a binding to the policy that has the name of the lost one.
// The namespace sets those of one name apart; bindings have none.
func newStandIn(of *policy.Unit, to policy.ID) standIn {
	binding := *of.Binding
	binding.Policy = to
	id := of.ID
	id.Namespace = to.Name
	return standIn{unit: &policy.Unit{ID: id, Binding: &binding}, of: of}
}
