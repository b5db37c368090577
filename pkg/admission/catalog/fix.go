// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import "github.com/portcullis-dev/portcullis/pkg/admission/policy"

// Fix puts units in force that are not stored, in place of those of the last call.
// Called before the stored objects are read, they are part of the first set and of
// every one after it. The units have different IDs, and their bindings name
// policies among them.
//
// Nothing that is stored changes them. A stored object with the ID of one of them
// has no effect, nor has a stored binding that names one of them; what they would
// have done is done again when the units are gone.
func (c *Catalog) Fix(units []*policy.Unit) {
	c.writing.Lock()
	defer c.writing.Unlock()
	next := make(map[policy.ID]*policy.Unit, len(units))
	for _, unit := range units {
		rest(unit)
		next[unit.ID] = c.interner.Unit(unit)
	}
	c.notify(c.fix(next))
}

// fix returns the objects of which there is something new to report.
func (c *Catalog) fix(next map[policy.ID]*policy.Unit) []policy.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	previous := c.fixed
	c.fixed = next
	set := c.set.Load()
	if set == nil {
		return nil // they come with the first set
	}
	e := edit{catalog: c, changed: map[policy.ID]bool{}}
	for id := range previous {
		e.settle(id)
	}
	for id := range next {
		e.settle(id)
	}
	for id, stored := range c.entries {
		if binding := stored.unit.Binding; binding != nil && (previous[binding.Policy] != nil || next[binding.Policy] != nil) {
			e.settle(id)
		}
	}
	e.bindLost()
	c.set.Store(set.Edit(e.gone, e.put))
	return e.list()
}

// Fixed returns what became of a unit of Fix, and false when the current set has
// none of that ID.
func (c *Catalog) Fixed(id policy.ID) (Report, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	unit := c.fixed[id]
	if unit == nil || c.set.Load() == nil {
		return Report{}, false
	}
	return Report{Binding: unit.Policy == nil}, true
}

// settle puts the unit in force that has the ID by right: one that is fixed, or else
// the stored one, unless that has no effect.
func (e *edit) settle(id policy.ID) {
	e.edited = true
	e.changed[id] = true
	if unit := e.catalog.effective(id); unit != nil {
		e.put = append(e.put, unit)
	} else {
		e.gone = append(e.gone, id)
	}
}

func (c *Catalog) effective(id policy.ID) *policy.Unit {
	if unit := c.fixed[id]; unit != nil {
		return unit
	}
	stored := c.entries[id]
	if stored == nil || lost(stored.unit) || stored.unit.Binding != nil && c.fixed[stored.unit.Binding.Policy] != nil {
		return nil
	}
	return stored.unit
}
