// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	observerBaseDelay = 100 * time.Millisecond
	observerMaxDelay  = time.Second
)

// observer holds what the Leases of all replicas say, this one among them, and when
// each was heard of, by the clock of this server: those of others may be wrong.
type observer struct {
	leases coordinationv1client.LeaseInterface
	own    string // name of the Lease of this replica
	holder string // this process
	clock  clock.WithTicker

	mu       sync.RWMutex
	synced   bool                // the Leases have been read
	replicas map[string]*replica // by the names of their Leases
	heard    time.Time           // when this process was last seen to renew its Lease
	watchers []*func()           // never changed in place
}

// replica is what is known of one. It never changes.
type replica struct {
	identity string
	lease    *coordinationv1.Lease
	holder   string // the process that has written the Lease
	enforced map[string]string
	ends     time.Time // when nobody waits for the replica any more
}

func newObserver(leases coordinationv1client.LeaseInterface, own, holder string, clock clock.WithTicker) *observer {
	return &observer{leases: leases, own: own, holder: holder, clock: clock, replicas: map[string]*replica{}}
}

// run follows the Leases until ctx ends.
func (o *observer) run(ctx context.Context) {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = leaseSelector
			return o.leases.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = leaseSelector
			return o.leases.Watch(ctx, options)
		},
	}
	reflector := cache.NewReflectorWithOptions(fewLeases{source}, &coordinationv1.Lease{}, o, cache.ReflectorOptions{
		Name:    "portcullis-replicas",
		Backoff: &wait.Backoff{Duration: observerBaseDelay, Factor: 2, Jitter: 0.2, Steps: 5, Cap: observerMaxDelay},
	})
	reflector.RunWithContext(ctx)
}

// fewLeases is a list that needs not be streamed.
type fewLeases struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported tells the reflector so.
func (fewLeases) IsWatchListSemanticsUnSupported() bool { return true }

// Add is called by the reflector, as is all that follows, in the order of events.
func (o *observer) Add(object any) error {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("unexpected %T", object)
	}
	o.mu.Lock()
	o.put(lease)
	o.mu.Unlock()
	o.notify()
	return nil
}

// Update is Add: the store knows what is new.
func (o *observer) Update(object any) error { return o.Add(object) }

// Delete forgets a replica.
func (o *observer) Delete(object any) error {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("unexpected %T", object)
	}
	o.mu.Lock()
	delete(o.replicas, lease.Name)
	o.mu.Unlock()
	o.notify()
	return nil
}

// Replace takes a list as all replicas that there are.
func (o *observer) Replace(list []any, _ string) error {
	listed := map[string]bool{}
	o.mu.Lock()
	for _, object := range list {
		lease, ok := object.(*coordinationv1.Lease)
		if !ok {
			o.mu.Unlock()
			return fmt.Errorf("unexpected %T", object)
		}
		listed[lease.Name] = true
		o.put(lease)
	}
	for name := range o.replicas {
		if !listed[name] {
			delete(o.replicas, name)
		}
	}
	o.synced = true
	o.mu.Unlock()
	o.notify()
	return nil
}

// Resync does nothing: what is not heard of grows old.
func (*observer) Resync() error { return nil }

// put notes a Lease. One that says what it said before is no sign of life.
func (o *observer) put(lease *coordinationv1.Lease) {
	if !strings.HasPrefix(lease.Name, leasePrefix) {
		return // someone has given it the label
	}
	before := o.replicas[lease.Name]
	now := o.clock.Now()
	next := &replica{identity: identityOf(lease), lease: lease, holder: holderOf(lease), enforced: enforcedIn(lease), ends: now.Add(durationOf(lease))}
	if before != nil && before.lease.UID == lease.UID && before.lease.Spec.RenewTime.Equal(lease.Spec.RenewTime) {
		next.ends = before.ends
	} else if lease.Name == o.own && next.holder == o.holder {
		o.hear(now)
	}
	o.replicas[lease.Name] = next
}

// hear notes that this process was seen to renew its Lease. After a while in which it
// was not, all others get their time anew: their renewals may be on their way too,
// behind this one.
func (o *observer) hear(now time.Time) {
	if now.Sub(o.heard) > sight {
		for name, one := range o.replicas {
			again := *one
			if ends := now.Add(durationOf(one.lease)); again.ends.Before(ends) {
				again.ends = ends
			}
			o.replicas[name] = &again
		}
	}
	o.heard = now
}

// lost says that another process has written the Lease of this one, or that it has
// been deleted.
func (o *observer) lost() (taken, deleted bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	own := o.replicas[o.own]
	if own == nil {
		return false, !o.heard.IsZero()
	}
	return own.holder != o.holder, false
}

func (o *observer) watch(notify func()) (stop func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watchers = append(slices.Clone(o.watchers), &notify)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.watchers = slices.DeleteFunc(slices.Clone(o.watchers), func(other *func()) bool { return other == &notify })
	}
}

func (o *observer) notify() {
	o.mu.RLock()
	watchers := o.watchers
	o.mu.RUnlock()
	for _, notify := range watchers {
		(*notify)()
	}
}
