// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"io"
	"net"
)

// accept ends when the listener is closed.
func (b *Balancer) accept() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.working.Go(func() { b.serve(client) })
	}
}

func (b *Balancer) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	chosen := b.choose()
	if chosen == nil {
		reset(client)
		return
	}
	server, err := net.Dial("tcp", chosen.Address) //nolint:noctx // it is local
	if err != nil {
		b.failed(chosen)
		reset(client)
		return
	}
	defer func() { _ = server.Close() }()
	if !b.track(client, server) {
		return
	}
	defer b.forget(client, server)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		forward(server, client)
	}()
	forward(client, server)
	<-sent
}

// choose returns the next replica that is ready, or nil.
func (b *Balancer) choose() *replica {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.replicas {
		at := (b.next + i) % len(b.replicas)
		if chosen := b.replicas[at]; chosen.Ready {
			b.next = at + 1
			chosen.Connections++
			return chosen
		}
	}
	b.refused++
	return nil
}

func (b *Balancer) failed(r *replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.Failed++
}

// track fails when the balancer is closed by now.
func (b *Balancer) track(connections ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, connection := range connections {
		b.open[connection] = struct{}{}
	}
	return !b.closed
}

func (b *Balancer) forget(connections ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, connection := range connections {
		delete(b.open, connection)
	}
}

// forward copies until one side ends, and passes on how: an end as an end, and anything
// else as a reset of both.
func forward(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		reset(to)
		reset(from)
		return
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
}

// reset ends a connection as a machine does on which nobody listens.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}
