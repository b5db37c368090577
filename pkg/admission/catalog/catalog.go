// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog keeps the compiled form of what is stored: each object is
// compiled once, when it changes, and the set of all of them is swapped
// atomically. It reports what became of each. It does not know how a policy
// language compiles, nor requests, nor how a report reaches a user.
package catalog

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// Catalog holds the set of compiled policies. It is safe for concurrent use.
type Catalog struct {
	dialects map[string]policy.Dialect // by kind
	interner policy.Interner           // of all units, candidates included
	set      atomic.Pointer[policy.Set]

	writing sync.Mutex                          // held while changes are compiled and put in force
	empty   map[string]func() apiruntime.Object // by kind, as the sources have it

	mu         sync.RWMutex // held to replace set and what goes with it
	entries    map[policy.ID]*entry
	bindings   map[policy.ID]bound // by the policy that they name
	lost       map[policy.ID]*policy.Unit
	fixed      map[policy.ID]*policy.Unit
	spread     map[policy.ID]standIn // by their own names
	followed   int                   // how many kinds
	enforced   map[string]string     // up to which version, by kind
	watchers   watchers[func(policy.ID)]
	onEnforced watchers[func()]
	failed     error // for ever: the stored objects cannot be followed
}

// entry is what became of one stored object.
type entry struct {
	input  digest // of the object that unit was compiled from
	unit   *policy.Unit
	report Report
	// gathered says that unit is what all equal ones share.
	gathered bool
}

// New returns an empty catalog of the kinds of the dialects.
func New(dialects []policy.Dialect) *Catalog {
	c := &Catalog{
		dialects: map[string]policy.Dialect{},
		empty:    map[string]func() apiruntime.Object{},
		entries:  map[policy.ID]*entry{},
		bindings: map[policy.ID]bound{},
		enforced: map[string]string{},
		lost:     map[policy.ID]*policy.Unit{},
	}
	for _, dialect := range dialects {
		for _, kind := range dialect.Kinds() {
			c.dialects[kind] = dialect
		}
	}
	return c
}

// Current returns the set in force. It is nil as long as the stored policies
// have not been read completely, and again once they can no longer be followed.
func (c *Catalog) Current() *policy.Set { return c.set.Load() }

// Compile compiles one internal object of kind, without putting it in force.
func (c *Catalog) Compile(ctx context.Context, kind string, obj apiruntime.Object) (*policy.Unit, field.ErrorList) {
	unit, errs := c.compile(ctx, kind, obj)
	return c.interner.Unit(unit), errs
}

func (c *Catalog) compile(ctx context.Context, kind string, obj apiruntime.Object) (*policy.Unit, field.ErrorList) {
	dialect, ok := c.dialects[kind]
	if !ok {
		return nil, field.ErrorList{field.NotSupported(field.NewPath("kind"), kind, c.kinds())}
	}
	return dialect.Compile(ctx, obj)
}

func (c *Catalog) kinds() []string {
	kinds := make([]string, 0, len(c.dialects))
	for kind := range c.dialects {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}
