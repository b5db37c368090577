// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcile has a controller look at each stored ValidatingAdmissionPolicy
// of which there may be something new to say, again after a failure, and now and
// then at those that others may have written.
//
// It does not know what controllers look for and what they write.
package reconcile

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

const (
	// Kind is that of the policies.
	Kind = "ValidatingAdmissionPolicy"
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

// Policies are the stored policies.
type Policies interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*v1alpha1.ValidatingAdmissionPolicy, error)
	List(ctx context.Context, options metav1.ListOptions) (*v1alpha1.ValidatingAdmissionPolicyList, error)
	UpdateStatus(ctx context.Context, stored *v1alpha1.ValidatingAdmissionPolicy, options metav1.UpdateOptions) (*v1alpha1.ValidatingAdmissionPolicy, error)
}

// Loop says how a controller looks at policies. It must not be copied.
type Loop struct {
	// Name is that of the queue of policies.
	Name string
	// Workers bounds the policies that are looked at at a time.
	Workers int
	// Sync looks at a policy, and again after an error. It may be called with
	// several policies at a time, and with each once at a time.
	Sync func(ctx context.Context, name string) error
	// Due says at a resync whether a policy is to be looked at. Nil means each.
	Due func(stored *v1alpha1.ValidatingAdmissionPolicy) bool
	// Feed adds policies for reasons of the controller's own, until ctx ends. Nil
	// means that there are none.
	Feed func(ctx context.Context, add func(name string))
	// Failing and Recovered are logged when Sync begins to fail, and at the first
	// call of Succeeded from then on.
	Failing, Recovered string

	// failing says that the last write failed, so that an outage is logged once.
	failing atomic.Bool
}

// Run looks at policies until ctx ends. It may be called again when it has returned.
func (l *Loop) Run(ctx context.Context, reports Reports, policies Policies) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: l.Name})
	defer reports.Watch(func(id policy.ID) {
		if id.Kind == Kind {
			queue.Add(id.Name)
		}
	})()
	var running sync.WaitGroup
	if l.Feed != nil {
		running.Go(func() { l.Feed(ctx, queue.Add) })
	}
	running.Go(func() {
		wait.JitterUntilWithContext(ctx, func(ctx context.Context) { l.lookAgain(ctx, policies, queue.Add) }, resync, 0.2, true)
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
func (l *Loop) lookAgain(ctx context.Context, policies Policies, add func(name string)) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	list, err := policies.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return
	}
	for i := range list.Items {
		if l.Due == nil || l.Due(&list.Items[i]) {
			add(list.Items[i].Name)
		}
	}
}

// next looks at one policy. It returns false when there will be none any more.
func (l *Loop) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) bool {
	name, stopped := queue.Get()
	if stopped {
		return false
	}
	defer queue.Done(name)
	err := l.Sync(ctx, name)
	if err == nil {
		queue.Forget(name)
		return true
	}
	queue.AddRateLimited(name)
	if ctx.Err() == nil && !apierrors.IsConflict(err) && !l.failing.Swap(true) {
		klog.FromContext(ctx).Error(err, l.Failing, "policy", name)
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
