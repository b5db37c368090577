// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"maps"
	"slices"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// Bound is a policy with the bindings that put it in force, ordered by name.
type Bound struct {
	ID       ID    // of the policy
	Policy   *Unit // nil when only bindings are there
	Bindings []*Unit
}

func (b *Bound) inForce() bool {
	return b.Policy != nil && (len(b.Bindings) > 0 || !b.Policy.Policy.NeedsBinding)
}

// Set is an immutable set of compiled policies and bindings. The zero value is
// empty. It is safe for concurrent use.
type Set struct {
	bound   map[ID]*Bound
	targets map[ID]ID // binding -> the policy that it names
	index   *match.Index[*Bound]
}

// Edit returns a set without the objects that remove names and with the units
// of put, each of which replaces the unit of the same ID; s stays as it is. Its
// cost is that of the change and of copying one pointer for each stored object.
func (s *Set) Edit(remove []ID, put []*Unit) *Set {
	e := editor{
		bound:   maps.Clone(s.bound),
		targets: maps.Clone(s.targets),
		touched: map[ID]bool{},
	}
	if e.bound == nil {
		e.bound, e.targets = map[ID]*Bound{}, map[ID]ID{}
	}
	for _, id := range remove {
		e.remove(id)
	}
	for _, unit := range put {
		e.put(unit)
	}
	return &Set{bound: e.bound, targets: e.targets, index: e.reindex(s.index)}
}

// Candidates appends to buf every policy in force that may match req, in the
// order of judgement: by kind, namespace and name.
func (s *Set) Candidates(req *request.Request, view cluster.View, buf []*Bound) []*Bound {
	return s.index.Candidates(req, view, buf)
}

// Policy returns the unit of a policy, or nil.
func (s *Set) Policy(id ID) *Unit {
	if bound := s.bound[id]; bound != nil {
		return bound.Policy
	}
	return nil
}

// All returns everything that the set holds, in the order of judgement, also
// what is not in force. Its cost grows with the set.
func (s *Set) All() []*Bound {
	names := make(map[string]*Bound, len(s.bound))
	for id, bound := range s.bound {
		names[order(id)] = bound
	}
	all := make([]*Bound, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, names[name])
	}
	return all
}

// Len returns the number of policies in force.
func (s *Set) Len() int { return s.index.Len() }

type editor struct {
	bound   map[ID]*Bound
	targets map[ID]ID
	touched map[ID]bool // policies whose Bound is a copy of ours
}

// touch returns a Bound of id that may be changed.
func (e *editor) touch(id ID) *Bound {
	if e.touched[id] {
		return e.bound[id]
	}
	e.touched[id] = true
	next := &Bound{ID: id}
	if old := e.bound[id]; old != nil {
		next.Policy, next.Bindings = old.Policy, slices.Clone(old.Bindings)
	}
	e.bound[id] = next
	return next
}

func (e *editor) remove(id ID) {
	if target, ok := e.targets[id]; ok {
		bound := e.touch(target)
		bound.Bindings = slices.DeleteFunc(bound.Bindings, func(u *Unit) bool { return u.ID == id })
		delete(e.targets, id)
		return
	}
	if bound := e.bound[id]; bound != nil && bound.Policy != nil {
		e.touch(id).Policy = nil
	}
}

func (e *editor) put(unit *Unit) {
	e.remove(unit.ID)
	if unit.Policy != nil {
		e.touch(unit.ID).Policy = unit
		return
	}
	e.targets[unit.ID] = unit.Binding.Policy
	bound := e.touch(unit.Binding.Policy)
	bound.Bindings = append(bound.Bindings, unit)
}

// reindex puts what was touched in order and returns old with the changes.
func (e *editor) reindex(old *match.Index[*Bound]) *match.Index[*Bound] {
	var gone []string
	var items []match.Item[*Bound]
	for id := range e.touched {
		bound := e.bound[id]
		slices.SortFunc(bound.Bindings, func(a, b *Unit) int { return cmp.Compare(a.ID.Name, b.ID.Name) })
		if !bound.inForce() {
			gone = append(gone, order(id))
			if bound.Policy == nil && len(bound.Bindings) == 0 {
				delete(e.bound, id)
			}
			continue
		}
		items = append(items, match.Item[*Bound]{Name: order(id), Criteria: bound.Policy.Policy.Criteria, Value: bound})
	}
	return old.Edit(gone, items)
}

// order is the name under which a policy is indexed: it sorts by kind,
// namespace and name.
func order(id ID) string { return id.Kind + "\x00" + id.Namespace + "\x00" + id.Name }
