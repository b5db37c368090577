// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicas makes one server of several that share an etcd: it tells the others
// what is in force on this one, knows from each of them what is in force there, and
// runs on one of them what must run once. It does so by Leases in the cluster.
//
// It does not know what policies are, nor what is done with what it knows. No server
// depends on it to judge requests.
package replicas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
)

// CheckName is that of the readiness check that asks Member.Ready.
const CheckName = "portcullis-replica-lease"

// Enforcement knows what is in force on this server.
type Enforcement interface {
	// Enforced returns, by kind, the resource version up to which all writes are in
	// force. It is nil before that is known, and for ever when nothing is in force any
	// more.
	Enforced() map[string]string
	// WatchEnforced calls notify, until stop is called, whenever Enforced may have
	// something new to say.
	WatchEnforced(notify func()) (stop func())
}

// Options are what a member stands on. All but Age, Able and Clock are required.
type Options struct {
	// Leases reaches the Leases of the cluster. It needs ten calls a second.
	Leases coordinationv1client.LeasesGetter
	// Namespace is that of the Leases. One set of replicas has it for itself.
	Namespace string
	// Identity tells this replica from all others that are alive, such as the name of
	// its Pod.
	Identity string
	// Enforcement says what is in force on this replica.
	Enforcement Enforcement
	// Age says how long ago all that is stored was known to be in force here. Without
	// it, a new replica may be ready before it has caught up with the last writes.
	Age func(now time.Time) (age time.Duration, known bool)
	// Able says why what the leader does cannot be done on this replica, such as that
	// etcd does not answer it. It leaves leading to others then. Nil means that it always
	// can.
	Able func() error
	// Clock is the real one when it is nil. Elections go by the real one in any case:
	// client-go knows no other.
	Clock clock.WithTicker
}

// Member is this server as one of the replicas.
type Member struct {
	publisher *publisher
	observer  *observer
	elector   *elector
	leaving   chan struct{} // closed when Leave is called
	leave     sync.Once
	running   sync.WaitGroup // Run
}

// New returns a member of which the others do not know yet.
func New(o Options) (*Member, error) {
	name := leasePrefix + o.Identity
	switch {
	case o.Leases == nil || o.Enforcement == nil:
		return nil, errors.New("replica: no client of Leases, or nothing that says what is in force")
	case o.Namespace == "":
		return nil, errors.New("replica: no namespace for the Leases")
	case o.Identity == "":
		return nil, errors.New("replica: no identity")
	}
	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		return nil, fmt.Errorf("replica: identity %q cannot be part of the name of a Lease: %s", o.Identity, faults[0])
	}
	o.Clock = cmp.Or[clock.WithTicker](o.Clock, clock.RealClock{})
	if o.Able == nil {
		o.Able = func() error { return nil }
	}
	// A server that is started again has its name, and is another one.
	holder := o.Identity + "_" + string(uuid.NewUUID())
	leases := o.Leases.Leases(o.Namespace)
	return &Member{
		publisher: newPublisher(leases, name, holder, o.Enforcement, o.Age, o.Clock),
		observer:  newObserver(leases, name, holder, o.Clock),
		elector:   newElector(o.Leases, o.Namespace, holder, o.Able),
		leaving:   make(chan struct{}),
	}, nil
}

// Start returns at once. Until ctx ends, Leave is called, or nothing is in force here
// any more, it keeps the Lease of this replica, follows those of the others, and
// stands for election. Whenever this replica leads, it calls lead, whose context ends
// when another one may lead; lead must return then. The Lease is left behind: see
// Leave. Start may be called once.
func (m *Member) Start(ctx context.Context, lead func(ctx context.Context)) {
	m.running.Go(func() { m.run(ctx, lead) })
}

func (m *Member) run(ctx context.Context, lead func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		select {
		case <-ctx.Done():
		case <-m.leaving:
			cancel()
		}
	})
	defer m.observer.watch(m.reclaim)()
	running.Go(func() { m.observer.run(ctx) })
	running.Go(func() {
		select {
		case <-ctx.Done():
		case <-m.publisher.written: // who has read nothing has nothing to tell as the leader
			m.elector.run(ctx, func(ctx context.Context) { m.lead(ctx, lead) })
		}
	})
	m.publisher.run(ctx)
}

// reclaim has the Lease written soon when this process has lost it. A contest goes on
// at the pace of renewals.
func (m *Member) reclaim() {
	taken, deleted := m.observer.lost()
	if deleted || taken && m.publisher.contested.Load() == nil {
		m.publisher.advanced()
	}
}

// lead also removes what replicas that were killed have left behind.
func (m *Member) lead(ctx context.Context, lead func(ctx context.Context)) {
	var sweeping sync.WaitGroup
	sweeping.Go(func() { m.observer.sweep(ctx) })
	lead(ctx)
	sweeping.Wait()
}

// Leave takes the Lease of this replica away, so that nobody waits for it any more, and
// lets others lead. It is to be called when the server does not judge any more. It
// returns when what Start has begun has ended, or with ctx.
func (m *Member) Leave(ctx context.Context) error {
	m.leave.Do(func() { close(m.leaving) })
	err := m.publisher.leave(ctx)
	ended := make(chan struct{})
	go func() {
		m.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
}

// Ready says why requests must not come to this replica yet, since others may not
// know that they have to wait for it. Once it has been nil it always is: a replica
// judges rightly without the cluster.
func (m *Member) Ready() error { return m.publisher.ready() }

// Passed says whether writes are in force on each replica that is alive. If not, it
// tells users for which ones they wait; the text is empty when nobody can tell at the
// moment.
func (m *Member) Passed(writes ...catalog.Write) (passed bool, waiting string) {
	return m.observer.passed(writes)
}

// Watch calls notify, until stop is called, whenever something has become known of a
// replica. Notify must return at once. That a replica is no longer alive is not told.
func (m *Member) Watch(notify func()) (stop func()) { return m.observer.watch(notify) }
