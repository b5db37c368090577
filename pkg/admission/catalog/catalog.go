// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog keeps the compiled form of what is stored: each object is
// compiled once, when it changes, and the set of all of them is swapped
// atomically. It does not know how a policy language compiles, nor requests.
package catalog

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// Catalog holds the set of compiled policies. It is safe for concurrent use.
type Catalog struct {
	dialects map[string]policy.Dialect // by kind

	mu     sync.Mutex // held to replace set
	set    atomic.Pointer[policy.Set]
	failed error // for ever: the stored objects cannot be followed
}

// New returns an empty catalog of the kinds of the dialects.
func New(dialects []policy.Dialect) *Catalog {
	c := &Catalog{dialects: map[string]policy.Dialect{}}
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

// Change is a stored object that was written, or deleted when Object is nil.
type Change struct {
	ID     policy.ID
	Object apiruntime.Object
}

// Apply compiles what was written, several objects at a time, and puts all
// changes in force at once. It fails, and changes nothing, when an object was
// written of which no dialect makes a unit: leaving it out would let pass what
// it denies.
func (c *Catalog) Apply(ctx context.Context, changes []Change) error {
	units := make([]*policy.Unit, len(changes))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range changes {
		if changes[i].Object == nil {
			continue
		}
		group.Go(func() (err error) {
			units[i], err = c.compile(ctx, changes[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var gone []policy.ID
	var put []*policy.Unit
	for i := range changes {
		if changes[i].Object == nil {
			gone = append(gone, changes[i].ID)
			continue
		}
		put = append(put, units[i])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return c.failed
	}
	set := c.set.Load()
	if set == nil {
		set = &policy.Set{}
	}
	c.set.Store(set.Edit(gone, put))
	return nil
}

// compile returns the unit of a stored object. What does not compile is kept:
// it then fails the requests that it matches, by its failurePolicy.
func (c *Catalog) compile(ctx context.Context, change Change) (*policy.Unit, error) {
	unit, errs := c.Compile(ctx, change.ID.Kind, change.Object)
	if unit == nil {
		return nil, fmt.Errorf("%s %q does not compile: its dialect has made nothing of it: %v", change.ID.Kind, change.ID.Name, errs)
	}
	if len(errs) > 0 {
		klog.FromContext(ctx).Error(errs.ToAggregate(), "A stored object does not compile: it fails the requests that it matches",
			"kind", change.ID.Kind, "namespace", change.ID.Namespace, "name", change.ID.Name)
	}
	return unit, nil
}
