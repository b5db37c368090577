// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package typecheck checks the types of each stored ValidatingAdmissionPolicy when
// its spec changes and when the types do, and writes what was found where
// kube-controller-manager writes it, in status.typeChecking and
// status.observedGeneration, and in the condition TypeChecked. Other conditions it
// leaves alone.
//
// It does not know how types are checked, nor how policies are stored or judge.
package typecheck

import (
	"context"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/typing"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/reconcile"
)

const (
	// workers bounds the checks at a time, so that a start with many policies
	// leaves processors to reviews.
	workers = 2
	// checkTimeout bounds one check. What a check may cost is bounded otherwise, to
	// less; this is for a machine that is too busy.
	checkTimeout = 30 * time.Second
)

// Check checks the types of a policy as they are now.
type Check func(ctx context.Context, spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) (*typing.Result, error)

// Controller writes what was found in policies.
type Controller struct {
	policies reconcile.Policies // since Run
	reports  reconcile.Reports
	loop     reconcile.Loop
	check    Check
	changes  chan struct{} // holds an entry when types have changed
	written  *memory
}

// New returns a controller that has not begun.
func New(reports reconcile.Reports, check Check) *Controller {
	c := &Controller{reports: reports, check: check, changes: make(chan struct{}, 1), written: newMemory()}
	c.loop = reconcile.Loop{
		Name: "policy-typecheck", Workers: workers, Feed: c.followTypes,
		Sync:      func(ctx context.Context, id policy.ID) error { return c.sync(ctx, id.Name) },
		Failing:   "The types of policies cannot be checked or their status not be written; trying on",
		Recovered: "The types of policies can be checked again",
	}
	return c
}

// TypesChanged has all policies checked again. It returns at once, and may be
// called before Run.
func (c *Controller) TypesChanged() {
	select {
	case c.changes <- struct{}{}:
	default: // the change before is still to be looked at
	}
}

// Run checks policies and writes their status until ctx ends. It may be called again
// when it has returned.
func (c *Controller) Run(ctx context.Context, policies reconcile.Policies) {
	c.policies = policies
	c.written.keep(func(name string) bool {
		_, reported := c.reports.Report(idOf(name))
		return reported
	})
	c.loop.Run(ctx, c.reports, reconcile.KindOf(reconcile.ValidatingAdmissionPolicy, policies.List, c.due))
}

// followTypes adds all policies whose types were checked before a change.
func (c *Controller) followTypes(ctx context.Context, add func(policy.ID)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changes:
			for _, name := range c.written.forgetAll() {
				add(idOf(name))
			}
		}
	}
}

// due says whether a policy is to be checked again, since its status is not what
// was written or its check has failed, and forgets what was written then.
func (c *Controller) due(stored *v1alpha1.ValidatingAdmissionPolicy) bool {
	if c.written.agrees(stored) {
		return false
	}
	c.written.forget(stored.Name)
	return true
}

func idOf(name string) policy.ID {
	return policy.ID{Kind: reconcile.ValidatingAdmissionPolicy, Name: name}
}
