// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcile has a controller look at each stored policy of which there may be
// something new to say, again after a failure, and now and then at those that others
// may have written.
//
// It does not know what controllers look for and what they write.
package reconcile

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

const (
	// CallTimeout bounds one call, so that a worker outlives an outage of etcd.
	CallTimeout = 10 * time.Second

	// firstRetry and lastRetry bound how long a policy waits after a failure. The
	// last one is how late a status may be after an outage.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
	// resync is how often all policies are looked at again. It is the only answer to
	// others who write their status, so that nobody fights over it.
	resync = 5 * time.Minute
)

// Reports says what became of the stored policies.
type Reports interface {
	Report(id policy.ID) (catalog.Report, bool)
	// Watch calls notify with each policy that there is, and from then on, until stop
	// is called, with each object of which there may be something new to report.
	Watch(notify func(policy.ID)) (stop func())
}

// Loop says how a controller looks at policies. It must not be copied.
type Loop struct {
	// Name is that of the queue of policies.
	Name string
	// Workers bounds the policies that are looked at at a time.
	Workers int
	// Sync looks at a policy, and again after an error. It may be called with
	// several policies at a time, and with each once at a time.
	Sync func(ctx context.Context, id policy.ID) error
	// Feed adds policies for reasons of the controller's own, until ctx ends. Nil
	// means that there are none.
	Feed func(ctx context.Context, add func(policy.ID))
	// Failing and Recovered are logged when Sync begins to fail, and at the first
	// call of Succeeded from then on.
	Failing, Recovered string

	// failing says that the last write failed, so that an outage is logged once.
	failing atomic.Bool
}

// Run looks at policies of some kinds until ctx ends. It may be called again when it
// has returned.
func (l *Loop) Run(ctx context.Context, reports Reports, kinds ...Kind) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[policy.ID](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[policy.ID]{Name: l.Name})
	defer reports.Watch(func(id policy.ID) {
		for _, kind := range kinds {
			if kind.Name == id.Kind {
				queue.Add(id)
			}
		}
	})()
	var running sync.WaitGroup
	if l.Feed != nil {
		running.Go(func() { l.Feed(ctx, queue.Add) })
	}
	running.Go(func() {
		wait.JitterUntilWithContext(ctx, func(ctx context.Context) { lookAgain(ctx, kinds, queue.Add) }, resync, 0.2, true)
	})
	for range l.Workers {
		running.Go(func() {
			for l.next(ctx, queue) {
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	running.Wait()
}

// Succeeded says that what Sync fails at in an outage has been done.
func (l *Loop) Succeeded(ctx context.Context) {
	if l.failing.Swap(false) {
		klog.FromContext(ctx).Info(l.Recovered)
	}
}

// lookAgain adds the policies that are due. What it cannot list now it lists next
// time.
func lookAgain(ctx context.Context, kinds []Kind, add func(policy.ID)) {
	for _, kind := range kinds {
		for _, id := range kind.due(ctx) {
			add(id)
		}
	}
}

// next looks at one policy. It returns false when there will be none any more.
func (l *Loop) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[policy.ID]) bool {
	id, stopped := queue.Get()
	if stopped {
		return false
	}
	defer queue.Done(id)
	err := l.Sync(ctx, id)
	if err == nil {
		queue.Forget(id)
		return true
	}
	queue.AddRateLimited(id)
	if ctx.Err() == nil && !apierrors.IsConflict(err) && !l.failing.Swap(true) {
		klog.FromContext(ctx).Error(err, l.Failing, "kind", id.Kind, "namespace", id.Namespace, "policy", id.Name)
	}
	return true
}

// IgnoreNotFound drops the error that an object is deleted: nobody waits for its
// status any more.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
