// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policystatus tells the writers of policies what became of them, in the
// conditions of each stored ValidatingAdmissionPolicy: after the set that judges
// requests has been swapped, where there are several servers on each of them, and only
// when there is something new to say.
//
// It does not know how policies are compiled or judged, nor how they are stored, nor
// how servers know of each other.
package policystatus

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/reconcile"
)

// workers bounds the writes in flight, so that a start with many policies leaves
// room for reviews.
const workers = 4

// Controller writes the conditions of policies.
type Controller struct {
	policies    reconcile.Policies
	reports     reconcile.Reports
	loop        reconcile.Loop
	propagation propagation
}

// New returns a controller that has not begun. It says that a policy is ready
// when gate has been passed by the last write of it and by those of its bindings that
// are known here. Of several servers one is to run it. A nil gate lets everything pass.
func New(policies reconcile.Policies, reports reconcile.Reports, gate Gate) *Controller {
	c := &Controller{policies: policies, reports: reports}
	c.propagation = propagation{gate: gate, clock: clock.RealClock{}, waiting: map[string]waiting{}}
	c.loop = reconcile.Loop{
		Name: "policy-status", Workers: workers, Sync: c.sync,
		Failing:   "The conditions of policies cannot be written; trying on",
		Recovered: "The conditions of policies can be written again",
	}
	if gate != nil {
		c.loop.Feed = c.followGate
	}
	return c
}

// Run writes conditions until ctx ends. It may be called again when it has returned.
func (c *Controller) Run(ctx context.Context) {
	c.propagation.forgetAll() // others may have written since
	c.loop.Run(ctx, c.reports, c.policies)
}

// sync writes the conditions of one policy if they are not what they should be.
func (c *Controller) sync(ctx context.Context, name string) error {
	report, ok := c.reports.Report(policy.ID{Kind: reconcile.Kind, Name: name})
	if !ok {
		c.propagation.forget(name)
		return nil // it is deleted, or its first report is still to come
	}
	entry := c.propagation.wait(name) // whatever happens from here on, followGate sees it
	passed, text := c.propagation.passed(&report)
	if passed {
		c.propagation.forget(name)
	} else if !c.propagation.due(entry, text) {
		return nil // followGate will tell
	}
	ctx, cancel := context.WithTimeout(ctx, reconcile.CallTimeout)
	defer cancel()
	// What has been reported has come through the cache that answers.
	stored, err := c.policies.Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return reconcile.IgnoreNotFound(err)
	}
	if stored.UID != report.UID || stored.Generation != report.Generation || undecodable(report, stored) {
		return nil // the report on what is stored now is still to come
	}
	wanted := conditions(report, stored.Spec.FailurePolicy)
	if !passed && !c.hold(entry, text, stored.Status.Conditions, wanted) {
		c.propagation.note(name, "")
		return nil
	}
	if !update(&stored.Status.Conditions, wanted) {
		c.propagation.note(name, text)
		return nil
	}
	_, err = c.policies.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
	if apierrors.IsInvalid(err) {
		klog.FromContext(ctx).Error(err, "The conditions of a policy are refused", "policy", name)
		return nil
	}
	if err == nil {
		c.propagation.note(name, text)
		c.loop.Succeeded(ctx)
	}
	return reconcile.IgnoreNotFound(err)
}

// undecodable says that the storage says itself what is wrong with the policy:
// there is no object whose status could be written.
func undecodable(report catalog.Report, stored *v1alpha1.ValidatingAdmissionPolicy) bool {
	compiled := meta.FindStatusCondition(stored.Status.Conditions, Compiled)
	return report.Damage != nil && compiled != nil && compiled.Reason == reasonCannotDecode
}

// update sets conditions, and says whether that has changed anything. The time of
// a transition stays while the status does.
func update(current *[]metav1.Condition, wanted []metav1.Condition) bool {
	changed := false
	for _, condition := range wanted {
		if meta.SetStatusCondition(current, condition) {
			changed = true
		}
	}
	return changed
}
