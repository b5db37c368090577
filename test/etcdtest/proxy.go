// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdtest

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/portcullis-dev/portcullis/test/controlplane/loopback"
)

// proxy forwards TCP connections, until it is told not to.
type proxy struct {
	address string // where it listens
	target  string

	mu          sync.Mutex
	listener    net.Listener // nil while connections are refused
	connections map[net.Conn]struct{}
	frozen      chan struct{} // nil while bytes flow, closed when they flow again
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	p := &proxy{address: freeAddress(t), target: target, connections: map[net.Conn]struct{}{}}
	t.Cleanup(p.refuse)
	return p
}

// open takes connections.
func (p *proxy) open(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return
	}
	listener, err := net.Listen("tcp", p.address) //nolint:noctx // it is local
	if err != nil {
		t.Fatalf("proxy of etcd: %v", err)
	}
	p.listener = listener
	go p.accept(listener)
}

// refuse ends all connections and takes no more.
func (p *proxy) refuse() {
	p.thaw()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return
	}
	p.listener.Close()
	p.listener = nil
	for connection := range p.connections {
		_ = connection.Close()
	}
}

// freeze keeps all connections, and those to come, and carries no bytes.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen == nil {
		p.frozen = make(chan struct{})
	}
}

// thaw ends what freeze began. What was sent meanwhile arrives.
func (p *proxy) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

func (p *proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go p.serve(client)
	}
}

func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	p.wait()
	server, err := net.Dial("tcp", p.target) //nolint:noctx // it is local
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !p.track(client, server) {
		return
	}
	defer p.forget(client, server)
	go func() {
		p.copy(server, client)
		_ = server.Close()
	}()
	p.copy(client, server)
}

// track fails when connections are refused by now.
func (p *proxy) track(connections ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return false
	}
	for _, connection := range connections {
		p.connections[connection] = struct{}{}
	}
	return true
}

func (p *proxy) forget(connections ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, connection := range connections {
		delete(p.connections, connection)
	}
}

func (p *proxy) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.wait()
		if _, writeErr := to.Write(buffer[:n]); writeErr != nil || err != nil {
			return
		}
	}
}

// wait returns when bytes flow.
func (p *proxy) wait() {
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
