// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// Report says what became of a stored object that is in the current set.
type Report struct {
	// UID, Generation and ResourceVersion are those of the object.
	UID             types.UID
	Generation      int64
	ResourceVersion string
	// Since is the resource version of the write since which the object says what it
	// says. Later ones have changed nothing but what the server keeps for itself.
	Since string
	// Faults are those that keep the object from compiling, each at its field.
	Faults field.ErrorList
	// Damage says that the stored object cannot be read.
	Damage error
	// Warnings are what the writer should know beside the faults.
	Warnings []string
	// Displaced says that something that is fixed has the place of the object, which
	// has no effect; see Catalog.Fix.
	Displaced bool
	// Diverging says why the policy, as it is, changes what it has made of an object
	// again, if that has been seen.
	Diverging string
	// Binding says that the object is not a policy but binds one.
	Binding bool
	// Bindings is the number of bindings that are known to name the policy. One that
	// is so damaged that nobody knows what it names is not counted.
	Bindings int
	// BoundSince is the last write or deletion of a binding that has changed what binds
	// the policy, as far as one is known.
	BoundSince Write
}

// whole says that the object is as its writer wants it.
func (r *Report) whole() bool { return r.Damage == nil && len(r.Faults) == 0 }

// Report returns what became of a stored object, and false when the current set
// does not hold it. What it says of a generation is true of every request that is
// judged from now on.
func (c *Catalog) Report(id policy.ID) (Report, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	entry, ok := c.entries[id]
	if !ok || c.failed != nil || c.set.Load() == nil {
		return Report{}, false
	}
	report := entry.report
	report.Bindings, report.BoundSince = c.bindings[id].count, c.bindings[id].since
	report.Displaced = c.fixed[id] != nil
	return report, true
}

// Diverges notes that a policy changes what it has made of an object again, and why. A
// unit that is not in force any more is passed over; the first reason stays.
func (c *Catalog) Diverges(unit *policy.Unit, why string) {
	if c.diverges(unit, why) {
		c.notify([]policy.ID{unit.ID})
	}
}

func (c *Catalog) diverges(unit *policy.Unit, why string) bool {
	c.writing.Lock() // nobody else replaces entries meanwhile
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[unit.ID]
	if !ok || entry.unit != unit || entry.report.Diverging != "" {
		return false
	}
	next := *entry
	next.report.Diverging = why
	c.entries[unit.ID] = &next
	return true
}

// Watch calls notify with each policy that there is, and from then on with each
// policy and binding of which there may be something new to report, as soon as
// that is in force. It must return at once. After stop it is not called again, but
// for a call that is under way.
func (c *Catalog) Watch(notify func(policy.ID)) (stop func()) {
	ids, stop := c.watch(notify)
	for _, id := range ids {
		notify(id)
	}
	return stop
}

func (c *Catalog) watch(notify func(policy.ID)) (ids []policy.ID, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stop = c.watchers.add(&c.mu, notify)
	ids = make([]policy.ID, 0, len(c.entries))
	for id, entry := range c.entries {
		if entry.unit.Policy != nil {
			ids = append(ids, id)
		}
	}
	for id, unit := range c.fixed {
		if _, stored := c.entries[id]; !stored && unit.Policy != nil {
			ids = append(ids, id)
		}
	}
	return ids, stop
}

func (c *Catalog) notify(ids []policy.ID) {
	c.mu.RLock()
	watchers := c.watchers
	c.mu.RUnlock()
	for _, notify := range watchers {
		for _, id := range ids {
			(*notify)(id)
		}
	}
}

// watchers are called when there is news. A list of them never changes: who has read
// it calls them without a lock.
type watchers[F any] []*F

// add adds a watcher to a list that mu guards, and which is held.
func (w *watchers[F]) add(mu sync.Locker, notify F) (stop func()) {
	*w = append(slices.Clone(*w), &notify)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		*w = slices.DeleteFunc(slices.Clone(*w), func(other *F) bool { return other == &notify })
	}
}
