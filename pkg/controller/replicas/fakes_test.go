// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	clienttesting "k8s.io/client-go/testing"
)

const namespace = "portcullis"

// cluster stores Leases as a kube-apiserver does: with resource versions, conflicts
// and preconditions.
type cluster struct {
	tracker clienttesting.ObjectTracker

	mu      sync.Mutex
	version int
	calls   []string // of writes that were done
}

func newCluster() *cluster {
	return &cluster{tracker: clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())}
}

// connection is how one server reaches the cluster.
type connection struct {
	coordinationv1client.LeasesGetter
	cluster *cluster

	mu      sync.Mutex
	cut     error
	watches []*watch.RaceFreeFakeWatcher
}

func (c *cluster) connect() *connection {
	client := &fake.Clientset{}
	conn := &connection{LeasesGetter: client.CoordinationV1(), cluster: c}
	client.AddReactor("*", "leases", conn.react)
	client.AddWatchReactor("leases", conn.watch)
	return conn
}

// sever has all calls fail, or with nil none any more, and ends all watches.
func (c *connection) sever(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = err
	for _, one := range c.watches {
		one.Stop()
	}
	c.watches = nil
}

func (c *connection) severed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// watched says whether there is a watch. What is deleted between a list and a watch,
// the tracker does not tell.
func (c *connection) watched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.watches) > 0
}

func (c *connection) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut != nil {
		return true, nil, c.cut
	}
	asked, ok := action.(clienttesting.WatchActionImpl)
	if !ok {
		return true, nil, fmt.Errorf("unexpected %T", action)
	}
	opened, err := c.cluster.tracker.Watch(action.GetResource(), action.GetNamespace(), asked.ListOptions)
	if one, ok := opened.(*watch.RaceFreeFakeWatcher); ok {
		c.watches = append(c.watches, one)
	}
	return true, opened, err
}

func (c *connection) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if err := c.severed(); err != nil {
		return true, nil, err
	}
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	resource, tracker := action.GetResource(), c.cluster.tracker
	switch action := action.(type) {
	case clienttesting.GetActionImpl:
		obj, err := tracker.Get(resource, namespace, action.Name)
		return true, obj, err
	case clienttesting.ListActionImpl:
		list, err := tracker.List(resource, action.Kind, namespace)
		return true, list, err
	case clienttesting.CreateActionImpl:
		lease := c.cluster.next(action.Object)
		lease.UID = types.UID("uid-" + lease.ResourceVersion)
		return true, lease, c.cluster.done("create", lease.Name, tracker.Create(resource, lease, namespace))
	case clienttesting.UpdateActionImpl:
		lease := c.cluster.next(action.Object)
		if err := c.cluster.check(resource, lease.Name, nil, &leaseOf(action.Object).ResourceVersion); err != nil {
			return true, nil, err
		}
		return true, lease, c.cluster.done("update", lease.Name, tracker.Update(resource, lease, namespace))
	case clienttesting.DeleteActionImpl:
		if on := action.DeleteOptions.Preconditions; on != nil {
			if err := c.cluster.check(resource, action.Name, on.UID, on.ResourceVersion); err != nil {
				return true, nil, err
			}
		}
		return true, nil, c.cluster.done("delete", action.Name, tracker.Delete(resource, namespace, action.Name))
	}
	return true, nil, fmt.Errorf("unexpected %T", action)
}

func leaseOf(obj runtime.Object) *coordinationv1.Lease {
	lease, ok := obj.(*coordinationv1.Lease)
	if !ok {
		panic(fmt.Sprintf("unexpected %T", obj))
	}
	return lease
}

func (c *cluster) next(obj runtime.Object) *coordinationv1.Lease {
	lease := leaseOf(obj).DeepCopy()
	c.version++
	lease.ResourceVersion = strconv.Itoa(c.version)
	return lease
}

func (c *cluster) check(resource schema.GroupVersionResource, name string, uid *types.UID, version *string) error {
	stored, err := c.tracker.Get(resource, namespace, name)
	if err != nil {
		return err
	}
	lease := leaseOf(stored)
	if uid != nil && lease.UID != *uid || version != nil && lease.ResourceVersion != *version {
		return apierrors.NewConflict(resource.GroupResource(), name, errors.New("it has changed"))
	}
	return nil
}

func (c *cluster) done(verb, name string, err error) error {
	if err == nil {
		c.calls = append(c.calls, verb+" "+name)
	}
	return err
}

// writes are those of a Lease that were done.
func (c *cluster) writes(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for _, call := range c.calls {
		if call == "create "+name || call == "update "+name {
			count++
		}
	}
	return count
}

// lease is nil when there is none.
func (c *cluster) lease(t *testing.T, name string) *coordinationv1.Lease {
	t.Helper()
	lease, err := c.connect().Leases(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// inForce is what is in force on a server, as the test says.
type inForce struct {
	mu       sync.Mutex
	versions map[string]string
	notify   []func()
}

func (f *inForce) Enforced() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.versions)
}

func (f *inForce) WatchEnforced(notify func()) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notify = append(f.notify, notify)
	return func() {}
}

func (f *inForce) set(versions map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.versions = versions
	for _, notify := range f.notify {
		notify()
	}
}

func policiesAt(version int) map[string]string {
	return map[string]string{"Policy": strconv.Itoa(version), "Binding": "1000"}
}

func eventually(t testing.TB, complaint string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatal(complaint)
	}
}
