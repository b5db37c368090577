// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policystatus tells the writers of policies what became of them, in the
// conditions of each stored policy: after the set that judges
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
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/reconcile"
)

// workers bounds the writes in flight, so that a start with many policies leaves
// room for reviews.
const workers = 4

// Controller writes the conditions of policies.
type Controller struct {
	kinds       map[string]Kind
	reports     reconcile.Reports
	loop        reconcile.Loop
	propagation propagation
}

// New returns a controller of some kinds of policies that has not begun. It says that a
// policy is ready when gate has been passed by the last write of it and by those of its
// bindings that are known here. Of several servers one is to run it. A nil gate lets
// everything pass.
func New(kinds []Kind, reports reconcile.Reports, gate Gate) *Controller {
	c := &Controller{kinds: make(map[string]Kind, len(kinds)), reports: reports}
	for _, kind := range kinds {
		c.kinds[kind.kind.Name] = kind
	}
	c.propagation = propagation{gate: gate, clock: clock.RealClock{}, waiting: map[policy.ID]waiting{}}
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
	kinds := make([]reconcile.Kind, 0, len(c.kinds))
	for _, kind := range c.kinds {
		kinds = append(kinds, kind.kind)
	}
	c.loop.Run(ctx, c.reports, kinds...)
}

// sync writes the conditions of one policy if they are not what they should be.
func (c *Controller) sync(ctx context.Context, id policy.ID) error {
	kind, ok := c.kinds[id.Kind]
	if !ok {
		return nil // it has no conditions
	}
	report, ok := c.reports.Report(id)
	if !ok {
		c.propagation.forget(id)
		return nil // it is deleted, or its first report is still to come
	}
	entry := c.propagation.wait(id) // whatever happens from here on, followGate sees it
	passed, text := c.propagation.passed(id, &report)
	if passed {
		c.propagation.forget(id)
	} else if !c.propagation.due(entry, text) {
		return nil // followGate will tell
	}
	ctx, cancel := context.WithTimeout(ctx, reconcile.CallTimeout)
	defer cancel()
	stored, err := kind.get(ctx, id)
	if err != nil {
		return reconcile.IgnoreNotFound(err)
	}
	if stored.GetUID() != report.UID || stored.GetGeneration() != report.Generation || undecodable(report, stored) {
		return nil // the report on what is stored now is still to come
	}
	wanted := kind.words.conditions(report, stored.failurePolicy)
	if !passed && !c.hold(entry, text, *stored.conditions, wanted) {
		c.propagation.note(id, "")
		return nil
	}
	if !stored.say(wanted, report.Generation) {
		c.propagation.note(id, text)
		return nil
	}
	return c.write(ctx, id, stored, text)
}

// write writes the status of a policy, of which text says for what it waits.
func (c *Controller) write(ctx context.Context, id policy.ID, stored *object, text string) error {
	err := stored.update(ctx)
	if apierrors.IsInvalid(err) {
		klog.FromContext(ctx).Error(err, "The conditions of a policy are refused", "kind", id.Kind, "namespace", id.Namespace, "policy", id.Name)
		return nil
	}
	if err == nil {
		c.propagation.note(id, text)
		c.loop.Succeeded(ctx)
	}
	return reconcile.IgnoreNotFound(err)
}

// undecodable says that the storage says itself what is wrong with the policy:
// there is no object whose status could be written.
func undecodable(report catalog.Report, stored *object) bool {
	compiled := meta.FindStatusCondition(*stored.conditions, Compiled)
	return report.Damage != nil && compiled != nil && compiled.Reason == reasonCannotDecode
}

// say sets conditions, the generation that they are about and what follows from the rest
// of the object, and says whether that has changed anything. The time of a transition stays while the status does.
func (o *object) say(wanted []metav1.Condition, generation int64) bool {
	changed := false
	for _, condition := range wanted {
		if meta.SetStatusCondition(o.conditions, condition) {
			changed = true
		}
	}
	if converges := meta.FindStatusCondition(*o.conditions, Converges); converges != nil && converges.ObservedGeneration != generation {
		changed = meta.RemoveStatusCondition(o.conditions, Converges) || changed
	}
	if o.observed != nil && *o.observed != generation {
		*o.observed, changed = generation, true
	}
	if o.derive != nil && o.derive() {
		changed = true
	}
	return changed
}
