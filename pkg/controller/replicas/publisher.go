// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// renewPeriod is how often a replica is heard of that has nothing to tell.
	renewPeriod = 5 * time.Second
	// publishPause lies between two writes of the Lease.
	publishPause = 100 * time.Millisecond
	// publishRetry is how long a write waits that has failed.
	publishRetry = 500 * time.Millisecond
	// callTimeout bounds one write of the Lease, so that a few of them fail before it
	// ends.
	callTimeout = 3 * time.Second
	// joinDelay is how long others have to hear of a new replica before it judges.
	joinDelay = 500 * time.Millisecond
	// joinPatience is how long a new replica waits until all is known to be in force
	// that was stored by then. Without etcd that would never be known.
	joinPatience = 10 * time.Second
	// attempts bounds how often a Lease is written that others write too.
	attempts = 3
)

// publisher keeps the Lease of this replica.
type publisher struct {
	leases      coordinationv1client.LeaseInterface
	name        string
	holder      string
	enforcement Enforcement
	age         func(now time.Time) (time.Duration, bool)
	clock       clock.Clock
	news        chan struct{} // holds an entry when there may be something new in force
	written     chan struct{} // closed when the Lease has been written

	mu      sync.Mutex            // held while the Lease is written
	last    *coordinationv1.Lease // as it was written; nil when that is not known
	left    bool
	failing bool
	taken   int // how often another process was found to have written the Lease; see contest

	joined  atomic.Pointer[time.Time] // when the Lease was written first
	failure atomic.Pointer[error]     // of the last write
	passed  atomic.Bool               // ready was nil

	contested atomic.Pointer[time.Time] // until when others may write the Lease; nil when nobody does
}

func newPublisher(leases coordinationv1client.LeaseInterface, name, holder string, enforcement Enforcement,
	age func(now time.Time) (time.Duration, bool), clock clock.Clock,
) *publisher {
	return &publisher{
		leases: leases, name: name, holder: holder, enforcement: enforcement, age: age, clock: clock,
		news: make(chan struct{}, 1), written: make(chan struct{}),
	}
}

// run publishes until ctx ends, or nothing is in force any more.
func (p *publisher) run(ctx context.Context) {
	stop := p.enforcement.WatchEnforced(p.advanced)
	defer stop()
	p.advanced() // before it was watched
	timer := p.clock.NewTimer(renewPeriod)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.news:
		case <-timer.C():
		}
		timer.Stop()
		enforced := p.enforcement.Enforced()
		if enforced == nil && p.joined.Load() != nil {
			klog.FromContext(ctx).Error(nil, "Nothing is in force on this server any more: it does not renew its Lease", "lease", p.name)
			return
		}
		if enforced == nil {
			continue // until there is news
		}
		next := renewPeriod
		if !p.publish(ctx, enforced) {
			next = publishRetry
		}
		timer.Reset(publishPause)
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		timer.Reset(next - publishPause)
	}
}

// advanced says that there may be something new in force. It returns at once.
func (p *publisher) advanced() {
	select {
	case p.news <- struct{}{}:
	default: // what is new now will be read too
	}
}

// publish writes the Lease, and returns false when it is to be tried again.
func (p *publisher) publish(ctx context.Context, enforced map[string]string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	logger := klog.FromContext(ctx)
	if err := p.write(ctx, enforced); err != nil {
		p.last = nil
		p.failure.Store(&err)
		if !p.failing && !errors.Is(ctx.Err(), context.Canceled) {
			logger.Error(err, "The Lease of this server cannot be written; trying on. It judges all the same; after a while others do not wait for it", "lease", p.name)
			p.failing = true
		}
		return false
	}
	if p.failing {
		p.failing = false
		logger.Info("The Lease of this server can be written again", "lease", p.name)
	}
	p.settle(ctx)
	if p.joined.Load() == nil {
		now := p.clock.Now()
		p.joined.Store(&now)
		close(p.written)
	}
	return true
}

// write writes the Lease, whatever others have made of it.
func (p *publisher) write(ctx context.Context, enforced map[string]string) error {
	var err error
	for range attempts {
		if err = p.writeOnce(ctx, enforced); err == nil {
			return nil
		}
		p.last = nil
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

func (p *publisher) writeOnce(ctx context.Context, enforced map[string]string) error {
	last := p.last
	if last == nil {
		found, err := p.leases.Get(ctx, p.name, metav1.GetOptions{})
		switch {
		case err == nil:
			last = found
			p.contest(ctx, found)
		case !apierrors.IsNotFound(err):
			return err
		}
	}
	if p.inContest() {
		enforced = map[string]string{} // on both, this is not known
	}
	next, err := renewed(last, p.name, p.holder, enforced, p.clock.Now())
	if err != nil {
		return err
	}
	if last == nil {
		p.last, err = p.leases.Create(ctx, next, metav1.CreateOptions{})
	} else {
		p.last, err = p.leases.Update(ctx, next, metav1.UpdateOptions{})
	}
	return err
}

// leave deletes the Lease if it is still of this process, and writes none any more.
func (p *publisher) leave(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	if p.joined.Load() == nil {
		return nil
	}
	var err error
	for range attempts {
		var lease *coordinationv1.Lease
		lease, err = p.leases.Get(ctx, p.name, metav1.GetOptions{})
		if err == nil && holderOf(lease) != p.holder {
			return nil // a server of the same name has been started
		}
		if err == nil {
			err = remove(ctx, p.leases, lease)
		}
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return fmt.Errorf("delete the Lease %s: %w", p.name, err)
}

// remove deletes a Lease unless it has been written since.
func remove(ctx context.Context, leases coordinationv1client.LeaseInterface, lease *coordinationv1.Lease) error {
	return leases.Delete(ctx, lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
	})
}

// ready returns why others may not know that they have to wait for this replica, or
// what they did not wait for may not be in force here.
func (p *publisher) ready() error {
	if p.passed.Load() {
		return nil
	}
	joined := p.joined.Load()
	if joined == nil {
		if failure := p.failure.Load(); failure != nil {
			return fmt.Errorf("the Lease %s has not been written: %w", p.name, *failure)
		}
		return fmt.Errorf("the Lease %s has not been written", p.name)
	}
	now, known := p.clock.Now(), joined.Add(joinDelay)
	if now.Before(known) {
		return errors.New("other servers may not have heard of this one")
	}
	if p.age != nil && now.Sub(*joined) < joinPatience {
		if age, ok := p.age(now); !ok || now.Add(-age).Before(known) {
			return errors.New("the last writes may not be in force")
		}
	}
	p.passed.Store(true)
	return nil
}
