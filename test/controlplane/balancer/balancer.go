// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package balancer plays what stands between a Service and its Pods: the kubelet that
// probes them, and the kube-proxy that spreads connections over those that are ready.
// It knows TCP and /readyz, and nothing of what the replicas serve.
package balancer

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
)

// Balancer forwards TCP connections to replicas that are ready, in turn. As with
// kube-proxy, a connection stays where it is, also when its replica becomes unready or
// is removed, and none is tried again with another replica. Without a ready replica it
// resets whoever connects. Its methods are safe for concurrent use.
type Balancer struct {
	listener net.Listener
	probes   *prober
	working  sync.WaitGroup // probes, and connections

	mu       sync.Mutex
	replicas []*replica // in the order in which they were added
	next     int        // where to look for the next ready one
	refused  int
	open     map[net.Conn]struct{} // both ends of what is established
	changed  chan struct{}         // closed, and replaced, when a replica becomes ready or unready
	closed   bool
}

// Replica is what the balancer knows of a backend.
type Replica struct {
	// Address is its host:port.
	Address string
	// Ready says how the last probe ended.
	Ready bool
	// Connections is how many it was given.
	Connections int
	// Failed is how many of these could not be established.
	Failed int
}

type replica struct {
	Replica
	stop context.CancelFunc // ends its probes
}

// Start listens on address, host:port of this machine; port 0 picks a free one. Close must be called.
func Start(address string) (*Balancer, error) {
	listener, err := net.Listen("tcp", address) //nolint:noctx // it is local
	if err != nil {
		return nil, fmt.Errorf("balancer: %w", err)
	}
	b := &Balancer{
		listener: listener,
		probes:   newProber(),
		open:     map[net.Conn]struct{}{},
		changed:  make(chan struct{}),
	}
	b.working.Go(b.accept)
	return b, nil
}

// Address is the host:port on which the balancer listens.
func (b *Balancer) Address() string {
	return b.listener.Addr().String()
}

// Port is the port on which the balancer listens.
func (b *Balancer) Port() int32 {
	address, ok := b.listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return int32(address.Port)
}

// Add makes address a replica, which gets connections as soon as a probe finds it ready. It may be one already.
func (b *Balancer) Add(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || slices.ContainsFunc(b.replicas, named(address)) {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	added := &replica{Replica: Replica{Address: address}, stop: stop}
	b.replicas = append(b.replicas, added)
	b.working.Go(func() {
		b.probes.run(ctx, address, func(ready bool) { b.set(added, ready) })
	})
}

// Remove gives address no more connections. Those that it has stay.
func (b *Balancer) Remove(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.replicas, named(address))
	if i < 0 {
		return
	}
	b.replicas[i].stop()
	b.replicas = slices.Delete(b.replicas, i, i+1)
	b.announce()
}

func named(address string) func(*replica) bool {
	return func(r *replica) bool { return r.Address == address }
}

// Close ends all connections, and refuses new ones.
func (b *Balancer) Close() {
	b.mu.Lock()
	b.closed = true
	b.listener.Close()
	for _, r := range b.replicas {
		r.stop()
	}
	for connection := range b.open {
		_ = connection.Close()
	}
	b.mu.Unlock()
	b.working.Wait()
}

// Replicas are the replicas, in the order in which they were added.
func (b *Balancer) Replicas() []Replica {
	b.mu.Lock()
	defer b.mu.Unlock()
	replicas := make([]Replica, 0, len(b.replicas))
	for _, r := range b.replicas {
		replicas = append(replicas, r.Replica)
	}
	return replicas
}

// Ready are the addresses of the replicas that are ready.
func (b *Balancer) Ready() []string {
	ready, _ := b.ready()
	return ready
}

// Refused is how many connections came while no replica was ready.
func (b *Balancer) Refused() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

// WaitReady returns when exactly the replicas at addresses are ready.
func (b *Balancer) WaitReady(ctx context.Context, addresses ...string) error {
	want := slices.Sorted(slices.Values(addresses))
	for {
		ready, changed := b.ready()
		slices.Sort(ready)
		if slices.Equal(ready, want) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("ready replicas are [%s], want [%s]: %w", strings.Join(ready, " "), strings.Join(want, " "), context.Cause(ctx))
		}
	}
}

// ready returns, too, what is closed when that is no longer so.
func (b *Balancer) ready() (addresses []string, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.replicas {
		if r.Ready {
			addresses = append(addresses, r.Address)
		}
	}
	return addresses, b.changed
}

func (b *Balancer) set(r *replica, ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Ready != ready {
		r.Ready = ready
		b.announce()
	}
}

// announce needs the lock.
func (b *Balancer) announce() {
	close(b.changed)
	b.changed = make(chan struct{})
}
