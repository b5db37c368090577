// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
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
	// Faults are those that keep the object from compiling, each at its field.
	Faults field.ErrorList
	// Damage says that the stored object cannot be read.
	Damage error
	// Binding says that the object is not a policy but binds one.
	Binding bool
	// Bindings is the number of bindings that are known to name the policy. One that
	// is so damaged that nobody knows what it names is not counted.
	Bindings int
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
	report.Bindings = c.bindings[id]
	return report, true
}

// Watch calls notify with each policy that there is, and from then on with each
// policy and binding of which there may be something new to report, as soon as
// that is in force. It must return at once.
func (c *Catalog) Watch(notify func(policy.ID)) {
	for _, id := range c.watch(notify) {
		notify(id)
	}
}

func (c *Catalog) watch(notify func(policy.ID)) []policy.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers = append(c.watchers, notify)
	ids := make([]policy.ID, 0, len(c.entries))
	for id, entry := range c.entries {
		if entry.unit.Policy != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func (c *Catalog) notify(ids []policy.ID) {
	c.mu.RLock()
	watchers := c.watchers
	c.mu.RUnlock()
	for _, notify := range watchers {
		for _, id := range ids {
			notify(id)
		}
	}
}
