// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/reconcile"
)

// attempts bounds how often a status is written that others write too.
const attempts = 5

// sync checks one policy, unless that was done, and writes what was found if it is
// not what the status says.
func (c *Controller) sync(ctx context.Context, name string) error {
	report, ok := c.reports.Report(idOf(name))
	if !ok || report.Damage != nil {
		c.written.forget(name) // it is deleted, or there is no object to check
		return nil
	}
	since, done := c.written.begin(name, report.UID, report.Generation)
	if done {
		return nil
	}
	// What has been reported has come through the cache that answers.
	stored, err := c.get(ctx, name, "0")
	if err != nil || stored == nil {
		return err
	}
	if stored.UID != report.UID || stored.Generation != report.Generation {
		return nil // the report on what is stored now is still to come
	}
	found := c.find(ctx, stored)
	if ctx.Err() != nil {
		return nil // that the server stops is no finding
	}
	stored, err = c.write(ctx, stored, found)
	if err != nil || stored == nil {
		return err
	}
	c.written.remember(stored, since, found.failed)
	c.loop.Succeeded(ctx)
	return nil
}

// find checks the policy. A check that fails is a finding, too.
func (c *Controller) find(ctx context.Context, stored *v1alpha1.ValidatingAdmissionPolicy) *finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	result, err := c.check(ctx, &stored.Spec)
	if err != nil {
		return failed(err)
	}
	return checked(result)
}

// write puts what was found into the status of the policy, as long as that has the
// same generation, and returns the policy as it is stored then. It returns nil when
// there is nothing to write to any more.
func (c *Controller) write(ctx context.Context, stored *v1alpha1.ValidatingAdmissionPolicy, found *finding) (*v1alpha1.ValidatingAdmissionPolicy, error) {
	name, uid, generation := stored.Name, stored.UID, stored.Generation
	var err error
	for range attempts {
		if !found.put(stored) {
			return stored, nil
		}
		var updated *v1alpha1.ValidatingAdmissionPolicy
		updated, err = c.update(ctx, stored)
		switch {
		case err == nil:
			return updated, nil
		case apierrors.IsInvalid(err) && !found.refused:
			found = refused(err)
			continue
		case apierrors.IsInvalid(err):
			klog.FromContext(ctx).Error(err, "What was found in the types of a policy is refused", "policy", name)
			return nil, nil //nolint:nilnil // It would be refused again.
		case !apierrors.IsConflict(err):
			return nil, reconcile.IgnoreNotFound(err)
		}
		// Others have written, such as the conditions that are not of this package.
		if stored, err = c.get(ctx, name, ""); err != nil || stored == nil {
			return nil, err
		}
		if stored.UID != uid || stored.Generation != generation {
			return nil, nil //nolint:nilnil // The report on what is stored now is still to come.
		}
	}
	return nil, err
}

// get returns a policy, and nil when it is deleted.
func (c *Controller) get(ctx context.Context, name, resourceVersion string) (*v1alpha1.ValidatingAdmissionPolicy, error) {
	ctx, cancel := context.WithTimeout(ctx, reconcile.CallTimeout)
	defer cancel()
	stored, err := c.policies.Get(ctx, name, metav1.GetOptions{ResourceVersion: resourceVersion})
	if err != nil {
		return nil, reconcile.IgnoreNotFound(err)
	}
	return stored, nil
}

func (c *Controller) update(ctx context.Context, stored *v1alpha1.ValidatingAdmissionPolicy) (*v1alpha1.ValidatingAdmissionPolicy, error) {
	ctx, cancel := context.WithTimeout(ctx, reconcile.CallTimeout)
	defer cancel()
	return c.policies.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
}
