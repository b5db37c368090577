// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// renew returns the entry of an object that was written: with the unit of the old
// one when a dialect would make the same again.
func (c *Catalog) renew(ctx context.Context, old *entry, change *Change) (*entry, error) {
	var input digest
	if change.Damage == nil {
		input = digestOf(change.Object)
	}
	if old != nil && input.known() && input == old.input {
		next := *old
		if accessor, err := meta.Accessor(change.Object); err == nil {
			next.report.ResourceVersion = accessor.GetResourceVersion()
		}
		return &next, nil
	}
	unit, faults, err := c.unit(ctx, change)
	if err != nil {
		return nil, err
	}
	rest(unit) // most are never asked, and what they would keep ready is most of what there is
	next := &entry{input: input, unit: unit, report: Report{Faults: faults, Damage: change.Damage, Warnings: unit.Warnings, Binding: unit.Policy == nil}}
	if accessor, err := change.metadata(); err == nil {
		next.report.UID = accessor.GetUID()
		next.report.Generation = accessor.GetGeneration()
		next.report.ResourceVersion = accessor.GetResourceVersion()
	}
	next.report.Since = next.report.ResourceVersion
	if old != nil && !input.known() && !old.input.known() && sameGeneration(&old.report, &next.report) {
		next.report.Since = old.report.Since
	}
	if !next.report.whole() {
		klog.FromContext(ctx).Error(errors.Join(change.Damage, faults.ToAggregate()), "A stored object cannot be used: it fails the requests that it matches",
			"kind", change.ID.Kind, "namespace", change.ID.Namespace, "name", change.ID.Name)
	}
	return next, nil
}

func sameGeneration(a, b *Report) bool { return a.UID == b.UID && a.Generation == b.Generation }

func (c *Change) metadata() (metav1.Object, error) {
	if c.Object != nil {
		return meta.Accessor(c.Object)
	}
	return meta.Accessor(c.Served)
}

// unit compiles an object. Of one that is damaged, what can be read of it is
// compiled, and in the end nothing but its name.
func (c *Catalog) unit(ctx context.Context, change *Change) (unit *policy.Unit, faults field.ErrorList, err error) {
	damage := change.Damage
	if change.Object != nil {
		unit, faults, err = c.contained(ctx, change.ID, change.Object)
		switch {
		case err == nil && damage == nil:
			return unit, faults, nil
		case err == nil:
			return spoil(unit, damage), nil, nil
		case damage == nil:
			damage = err
			faults = field.ErrorList{field.InternalError(nil, err)}
		}
	}
	unit, err = c.bare(ctx, change.ID)
	if err != nil {
		return nil, nil, errors.Join(damage, err)
	}
	return spoil(unit, damage), faults, nil
}

// bare compiles an object of which only the name is known.
func (c *Catalog) bare(ctx context.Context, id policy.ID) (*policy.Unit, error) {
	empty, ok := c.empty[id.Kind]
	if !ok {
		return nil, fmt.Errorf("%s %q: nobody knows what an empty %s is", id.Kind, id.Name, id.Kind)
	}
	obj := empty()
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	accessor.SetNamespace(id.Namespace)
	accessor.SetName(id.Name)
	unit, _, err := c.contained(ctx, id, obj)
	return unit, err
}

// contained compiles an object. A panic, or a dialect that makes nothing of the
// object, is an error.
func (c *Catalog) contained(ctx context.Context, id policy.ID, obj apiruntime.Object) (unit *policy.Unit, faults field.ErrorList, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			unit, faults, err = nil, nil, fmt.Errorf("compiling %s %q panicked", id.Kind, id.Name)
			klog.FromContext(ctx).Error(nil, "Compiling a stored object panicked", "kind", id.Kind, "namespace", id.Namespace,
				"name", id.Name, "stack", string(debug.Stack()))
		}
	}()
	unit, faults = c.compile(ctx, id.Kind, obj)
	if unit == nil {
		return nil, nil, fmt.Errorf("%s %q does not compile: its dialect has made nothing of it: %v", id.Kind, id.Name, faults)
	}
	return unit, faults, nil
}
