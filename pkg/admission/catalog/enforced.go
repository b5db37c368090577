// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// Write is a write or deletion of some object of a kind.
type Write struct {
	Kind            string
	ResourceVersion string
}

// Enforced returns, for each kind that is followed, the resource version up to which
// all writes and deletions are in force: for each request that is judged from now on.
// It is nil as long as that is not known of all kinds, and when no set is in force.
func (c *Catalog) Enforced() map[string]string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.failed != nil || c.set.Load() == nil || c.followed == 0 || len(c.enforced) < c.followed {
		return nil
	}
	return maps.Clone(c.enforced)
}

// WatchEnforced calls notify, until stop is called, whenever Enforced may have
// something new to say. Notify must return at once.
func (c *Catalog) WatchEnforced(notify func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.onEnforced.add(&c.mu, notify)
}

// advance notes up to which versions all is in force.
func (c *Catalog) advance(reached map[string]string) {
	for _, notify := range c.enforce(reached) {
		(*notify)()
	}
}

// enforce returns who is to be notified, and nil when nothing is new.
func (c *Catalog) enforce(reached map[string]string) watchers[func()] {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := false
	for kind, version := range reached {
		before, known := c.enforced[kind]
		if known && before == version {
			continue
		}
		changed = true
		c.enforced[kind] = version
		if known && later(before, version) {
			c.goBack(kind, version)
		}
	}
	if !changed {
		return nil
	}
	return c.onEnforced
}

// goBack is called when the storage has lost its last writes of a kind, as after a
// backup was restored: nobody will ever be told of a version after the last one.
func (c *Catalog) goBack(kind, last string) {
	for id, e := range c.entries {
		if id.Kind == kind && later(e.report.Since, last) {
			next := *e // who has the old one may be reading it
			next.report.Since = last
			c.entries[id] = &next
		}
	}
	for id, b := range c.bindings {
		if b.since.Kind == kind && later(b.since.ResourceVersion, last) {
			b.since.ResourceVersion = last
			c.bindings[id] = b
		}
	}
}

// later says whether a resource version comes after another one. One that is unknown
// comes before all others.
func later(a, b string) bool {
	if b == "" {
		return a != ""
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// bound is what is known of the bindings of a policy.
type bound struct {
	count int   // how many name it
	since Write // the last one that has changed which they are, or what they say
}

// rebind notes that a write has added bindings of a policy or taken them away.
func (c *Catalog) rebind(named policy.ID, by int, write Write) {
	b := c.bindings[named]
	b.count += by
	if write.ResourceVersion != "" && later(write.ResourceVersion, b.since.ResourceVersion) {
		b.since = write
	}
	c.bindings[named] = b
	c.dropUnbound(named)
}

// dropUnbound forgets the bindings of a policy when neither exists. As long as it
// exists, it matters when it lost the last one.
func (c *Catalog) dropUnbound(named policy.ID) {
	if _, stored := c.entries[named]; !stored && c.bindings[named].count == 0 {
		delete(c.bindings, named)
	}
}
