// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/portcullis-dev/portcullis/pkg/admission/internal/shards"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// Bound is a policy with the bindings that put it in force, ordered by name.
type Bound struct {
	ID       ID    // of the policy
	Policy   *Unit // nil when only bindings are there
	Bindings []*Unit

	once    sync.Once
	origins []verdict.Origin
}

// Origins returns that of what the policy finds without a binding, and then that of
// what it finds through each of Bindings without a param. They are made when a
// request first needs them, as those of most policies never are. All requests share
// them, and nobody may modify them. Policy must not be nil.
func (b *Bound) Origins() []verdict.Origin {
	b.once.Do(func() {
		b.origins = make([]verdict.Origin, 1+len(b.Bindings))
		b.origins[0] = verdict.Origin{Policy: b.Policy.ID, OnError: b.Policy.Policy.OnError, Mutates: b.Policy.Policy.Mutates}
		for i, binding := range b.Bindings {
			b.origins[i+1] = b.origins[0]
			b.origins[i+1].Binding, b.origins[i+1].Actions = binding.ID.Name, binding.Binding.Actions
		}
	})
	return b.origins
}

func (b *Bound) inForce() bool {
	return b.Policy != nil && (len(b.Bindings) > 0 || !b.Policy.Policy.NeedsBinding)
}

// Set is an immutable set of compiled policies and bindings. The zero value is
// empty. It is safe for concurrent use.
type Set struct {
	bound   *shards.Map[ID, *Bound]
	targets *shards.Map[ID, ID] // binding -> the policy that it names
	index   *match.Index[*Bound]
}

// Edit returns a set without the objects that remove names and with the units
// of put, each of which replaces the unit of the same ID; s stays as it is. What
// is unchanged is shared with s, so the cost is near to that of the change.
func (s *Set) Edit(remove []ID, put []*Unit) *Set {
	e := editor{
		bound:   shards.NewDraft(s.bound, nil),
		targets: shards.NewDraft(s.targets, nil),
		touched: map[ID]*Bound{},
	}
	for _, id := range remove {
		e.remove(id)
	}
	for _, unit := range put {
		e.put(unit)
	}
	index := e.reindex(s.index)
	return &Set{bound: e.bound.Map(), targets: e.targets.Map(), index: index}
}

// Candidates appends to buf every policy in force that may match the subject, in
// the order of judgement: by kind, namespace and name.
func (s *Set) Candidates(subject *match.Subject, buf []*Bound) []*Bound {
	return s.index.Candidates(subject, buf)
}

// After returns those of the policies, which are in the order of judgement, that come
// after one.
func After(id ID, bounds []*Bound) []*Bound {
	before := order(id)
	first := slices.IndexFunc(bounds, func(b *Bound) bool { return order(b.ID) > before })
	if first < 0 {
		return nil
	}
	return bounds[first:]
}

// Policy returns the unit of a policy, or nil.
func (s *Set) Policy(id ID) *Unit {
	if bound, ok := s.bound.Get(id); ok {
		return bound.Policy
	}
	return nil
}

// All returns everything that the set holds, in the order of judgement, also
// what is not in force. Its cost grows with the set.
func (s *Set) All() []*Bound {
	names := make(map[string]*Bound, s.bound.Len())
	for id, bound := range s.bound.All() {
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
	bound   *shards.Draft[ID, *Bound]
	targets *shards.Draft[ID, ID]
	touched map[ID]*Bound // those that are copies of ours
}

// touch returns a Bound of id that may be changed.
func (e *editor) touch(id ID) *Bound {
	if own := e.touched[id]; own != nil {
		return own
	}
	next := &Bound{ID: id}
	if old, ok := e.bound.Get(id); ok {
		next.Policy, next.Bindings = old.Policy, slices.Clone(old.Bindings)
	}
	e.touched[id] = next
	e.bound.Set(id, next)
	return next
}

func (e *editor) remove(id ID) {
	if target, ok := e.targets.Get(id); ok {
		bound := e.touch(target)
		bound.Bindings = slices.DeleteFunc(bound.Bindings, func(u *Unit) bool { return u.ID == id })
		e.targets.Delete(id)
		return
	}
	if bound, ok := e.bound.Get(id); ok && bound.Policy != nil {
		e.touch(id).Policy = nil
	}
}

func (e *editor) put(unit *Unit) {
	e.remove(unit.ID)
	if unit.Policy != nil {
		e.touch(unit.ID).Policy = unit
		return
	}
	e.targets.Set(unit.ID, unit.Binding.Policy)
	bound := e.touch(unit.Binding.Policy)
	bound.Bindings = append(bound.Bindings, unit)
}

// reindex puts what was touched in order and returns old with the changes.
func (e *editor) reindex(old *match.Index[*Bound]) *match.Index[*Bound] {
	var gone []string
	var items []match.Item[*Bound]
	for id, bound := range e.touched {
		slices.SortFunc(bound.Bindings, func(a, b *Unit) int { return cmp.Compare(a.ID.Name, b.ID.Name) })
		if !bound.inForce() {
			gone = append(gone, order(id))
			if bound.Policy == nil && len(bound.Bindings) == 0 {
				e.bound.Delete(id)
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
