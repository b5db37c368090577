// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// Change is a stored object that was written, or deleted when Object and Damage
// are nil.
type Change struct {
	ID     policy.ID
	Object apiruntime.Object
	// Damage says that the stored object cannot be read, and why. Object is then
	// what can be read of it, and nil when nothing can be.
	Damage error
	// Served is the object in the form that the source has told of. It says which
	// version of the object this is when Object is nil.
	Served apiruntime.Object
	// Deleted is the resource version of a deletion, if it is known.
	Deleted string
}

func (c *Change) deletes() bool { return c.Object == nil && c.Damage == nil }

// Apply compiles what was written, several objects at a time, and puts all
// changes in force at once. Objects that a dialect would see as before are not
// compiled again. What cannot be read or compiled fails the requests that it
// matches, and no others. Apply fails, and changes nothing, when there is an
// object of which no dialect makes anything: leaving it out would let pass what
// it denies.
func (c *Catalog) Apply(ctx context.Context, changes []Change) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	next := make([]*entry, len(changes))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range changes {
		if changes[i].deletes() {
			continue
		}
		old := c.entries[changes[i].ID] // only replaced by who holds writing
		group.Go(func() (err error) {
			next[i], err = c.renew(ctx, old, &changes[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	c.gather(next)
	changed, err := c.swap(changes, next)
	if err != nil {
		return err
	}
	c.notify(changed)
	return nil
}

// gather copies what stays of new entries, all in one go: the garbage collector passes
// over what lies together several times as fast as over what is strewn among the remains
// of compiling.
func (c *Catalog) gather(entries []*entry) {
	for i, e := range entries {
		if e != nil && !e.gathered {
			entries[i] = c.shared(e)
		}
	}
}

// shared returns a copy of e with what equal units have alike, or e itself if that
// panics: nothing but memory depends on it.
func (c *Catalog) shared(e *entry) (own *entry) {
	defer func() {
		if recover() != nil {
			own = e
		}
	}()
	copied := *e
	copied.unit, copied.gathered = c.interner.Unit(e.unit), true
	return &copied
}

// swap puts the entries in force in place of those that the changes name, and
// returns the objects of which there is something new to report.
func (c *Catalog) swap(changes []Change, next []*entry) ([]policy.ID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return nil, c.failed
	}
	e := edit{catalog: c, changed: map[policy.ID]bool{}}
	for i := range changes {
		e.replace(&changes[i], next[i])
	}
	set := c.set.Load()
	if set == nil {
		set = &policy.Set{}
		for id := range c.fixed {
			e.settle(id)
		}
	} else if !e.edited {
		return nil, nil
	}
	e.bindLost()
	c.set.Store(set.Edit(e.gone, e.put))
	return e.list(), nil
}

// edit is one change of the set and of what is reported of it.
type edit struct {
	catalog *Catalog
	edited  bool
	gone    []policy.ID
	put     []*policy.Unit
	changed map[policy.ID]bool
}

// replace puts an entry, or nothing when it is nil, in place of that of a change.
func (e *edit) replace(change *Change, next *entry) {
	id, write := change.ID, Write{Kind: change.ID.Kind, ResourceVersion: change.Deleted}
	old := e.catalog.entries[id]
	if next == nil {
		delete(e.catalog.entries, id)
	} else {
		e.catalog.entries[id] = next
		write.ResourceVersion = next.report.Since
		if old != nil && old.unit == next.unit {
			return
		}
	}
	if old != nil {
		e.forget(id, old.unit, write)
	}
	if next != nil {
		e.remember(id, next.unit, write)
	}
	e.settle(id)
}

func (e *edit) remember(id policy.ID, unit *policy.Unit, write Write) {
	switch {
	case unit.Policy != nil:
	case lost(unit):
		e.catalog.lost[id] = unit
	default:
		e.catalog.rebind(unit.Binding.Policy, 1, write)
		e.changed[unit.Binding.Policy] = true
	}
}

func (e *edit) forget(id policy.ID, unit *policy.Unit, write Write) {
	if unit.Policy != nil {
		e.catalog.dropUnbound(id)
		return
	}
	if lost(unit) {
		delete(e.catalog.lost, id)
		return
	}
	named := unit.Binding.Policy
	e.changed[named] = true
	e.catalog.rebind(named, -1, write)
}

func (e *edit) list() []policy.ID {
	ids := make([]policy.ID, 0, len(e.changed))
	for id := range e.changed {
		ids = append(ids, id)
	}
	return ids
}
