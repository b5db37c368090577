// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policystatus tells the writers of policies what became of them, in the
// conditions of each stored ValidatingAdmissionPolicy: after the set that judges
// requests has been swapped, and only when there is something new to say.
//
// It does not know how policies are compiled or judged, nor how they are stored.
package policystatus

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

const (
	kind = "ValidatingAdmissionPolicy"

	// workers bounds the writes in flight, so that a start with many policies
	// leaves room for reviews.
	workers = 4
	// callTimeout bounds one call, so that a worker outlives an outage of etcd.
	callTimeout = 10 * time.Second
	// firstRetry and lastRetry bound how long a policy waits after a failure. The
	// last one is how late conditions may be after an outage.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
	// resync is how often the conditions of all policies are looked at again. It is
	// the only answer to others who write them, so that nobody fights over them.
	resync = 5 * time.Minute
)

// Reports says what became of the stored policies.
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

// Controller writes the conditions of policies.
type Controller struct {
	policies Policies
	reports  Reports
	// failing says that the last write failed, so that an outage is logged once.
	failing atomic.Bool
}

// New returns a controller that has not begun.
func New(policies Policies, reports Reports) *Controller {
	return &Controller{policies: policies, reports: reports}
}

// Run writes conditions until ctx ends. It may be called once.
func (c *Controller) Run(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "policy-status"})
	c.reports.Watch(func(id policy.ID) {
		if id.Kind == kind {
			queue.Add(id.Name)
		}
	})
	var running sync.WaitGroup
	running.Go(func() {
		wait.JitterUntilWithContext(ctx, func(ctx context.Context) { c.enqueueAll(ctx, queue) }, resync, 0.2, true)
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

// enqueueAll looks at every policy again. What it cannot list now it lists next
// time.
func (c *Controller) enqueueAll(ctx context.Context, queue workqueue.TypedInterface[string]) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := c.policies.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return
	}
	for i := range list.Items {
		queue.Add(list.Items[i].Name)
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
		klog.FromContext(ctx).Error(err, "The conditions of policies cannot be written; trying on", "policy", name)
	}
	return true
}

// sync writes the conditions of one policy if they are not what they should be.
func (c *Controller) sync(ctx context.Context, name string) error {
	report, ok := c.reports.Report(policy.ID{Kind: kind, Name: name})
	if !ok {
		return nil // it is deleted, or its first report is still to come
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// What has been reported has come through the cache that answers.
	stored, err := c.policies.Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return ignore(err, apierrors.IsNotFound)
	}
	if stored.UID != report.UID || stored.Generation != report.Generation || undecodable(report, stored) {
		return nil // the report on what is stored now is still to come
	}
	if !update(&stored.Status.Conditions, conditions(report, stored.Spec.FailurePolicy)) {
		return nil
	}
	_, err = c.policies.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
	if apierrors.IsInvalid(err) {
		klog.FromContext(ctx).Error(err, "The conditions of a policy are refused", "policy", name)
		return nil
	}
	if err == nil && c.failing.Swap(false) {
		klog.FromContext(ctx).Info("The conditions of policies can be written again")
	}
	return ignore(err, apierrors.IsNotFound)
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

func ignore(err error, expected func(error) bool) error {
	if expected(err) {
		return nil
	}
	return err
}
