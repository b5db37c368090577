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
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/typing"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

const (
	kind = "ValidatingAdmissionPolicy"

	// workers bounds the checks at a time, so that a start with many policies
	// leaves processors to reviews.
	workers = 2
	// checkTimeout bounds one check. What a check may cost is bounded otherwise, to
	// less; this is for a machine that is too busy.
	checkTimeout = 30 * time.Second
	// callTimeout bounds one call, so that a worker outlives an outage of etcd.
	callTimeout = 10 * time.Second
	// firstRetry and lastRetry bound how long a policy waits after a failure.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
	// resync is how often the status of all policies is looked at again. It is the
	// only answer to others who write it, so that nobody fights over it, and to
	// checks that have failed.
	resync = 5 * time.Minute
)

// Reports says which policies are stored.
type Reports interface {
	Report(id policy.ID) (catalog.Report, bool)
	// Watch calls notify with each policy that there is, and from then on with
	// each object of which there may be something new to report.
	Watch(notify func(policy.ID))
}

// Policies are the stored policies.
type Policies interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*v1alpha1.ValidatingAdmissionPolicy, error)
	List(ctx context.Context, options metav1.ListOptions) (*v1alpha1.ValidatingAdmissionPolicyList, error)
	UpdateStatus(ctx context.Context, stored *v1alpha1.ValidatingAdmissionPolicy, options metav1.UpdateOptions) (*v1alpha1.ValidatingAdmissionPolicy, error)
}

// Check checks the types of a policy as they are now.
type Check func(ctx context.Context, policy *admissionregistrationv1.ValidatingAdmissionPolicySpec) (*typing.Result, error)

// Controller writes what was found in policies.
type Controller struct {
	policies Policies // since Run
	reports  Reports
	check    Check
	changes  chan struct{} // holds an entry when types have changed
	written  *memory
	// failing says that the last write failed, so that an outage is logged once.
	failing atomic.Bool
}

// New returns a controller that has not begun.
func New(reports Reports, check Check) *Controller {
	return &Controller{reports: reports, check: check, changes: make(chan struct{}, 1), written: newMemory()}
}

// TypesChanged has all policies checked again. It returns at once, and may be
// called before Run.
func (c *Controller) TypesChanged() {
	select {
	case c.changes <- struct{}{}:
	default: // the change before is still to be looked at
	}
}

// Run checks policies and writes their status until ctx ends. It may be called once.
func (c *Controller) Run(ctx context.Context, policies Policies) {
	c.policies = policies
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "policy-typecheck"})
	c.reports.Watch(func(id policy.ID) {
		if id.Kind == kind {
			queue.Add(id.Name)
		}
	})
	var running sync.WaitGroup
	running.Go(func() { c.followTypes(ctx, queue) })
	running.Go(func() {
		wait.JitterUntilWithContext(ctx, func(ctx context.Context) { c.lookAgain(ctx, queue) }, resync, 0.2, true)
	})
	for range workers {
		running.Go(func() {
			for c.next(ctx, queue) {
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	running.Wait()
}

// followTypes enqueues all policies whose types were checked before a change.
func (c *Controller) followTypes(ctx context.Context, queue workqueue.TypedInterface[string]) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changes:
			for _, name := range c.written.forgetAll() {
				queue.Add(name)
			}
		}
	}
}

// lookAgain enqueues the policies whose status is not what was written, and those
// whose check has failed. What it cannot list now it lists next time.
func (c *Controller) lookAgain(ctx context.Context, queue workqueue.TypedInterface[string]) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := c.policies.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return
	}
	for i := range list.Items {
		if !c.written.agrees(&list.Items[i]) {
			c.written.forget(list.Items[i].Name)
			queue.Add(list.Items[i].Name)
		}
	}
}

func (c *Controller) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) bool {
	name, stopped := queue.Get()
	if stopped {
		return false
	}
	defer queue.Done(name)
	err := c.sync(ctx, name)
	if err == nil {
		queue.Forget(name)
		return true
	}
	queue.AddRateLimited(name)
	if ctx.Err() == nil && !apierrors.IsConflict(err) && !c.failing.Swap(true) {
		klog.FromContext(ctx).Error(err, "The types of policies cannot be checked or their status not be written; trying on", "policy", name)
	}
	return true
}
