// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/test/controlplane/balancer"
)

// patience is how long a step may take on a busy machine before it counts as stuck.
const patience = time.Minute

// backend is a replica under test. It answers requests with its name, and when it has
// none, it ends the connection.
type backend struct {
	name    string
	address string
	code    atomic.Int32 // of /readyz
}

// newBackend returns a replica whose /readyz answers code.
func newBackend(t *testing.T, name string, code int32) *backend {
	t.Helper()
	b := &backend{name: name}
	b.code.Store(code)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/readyz":
			w.WriteHeader(int(b.code.Load()))
		case name == "":
			panic(http.ErrAbortHandler)
		default:
			_, _ = io.WriteString(w, name)
		}
	}))
	t.Cleanup(server.Close)
	b.address = server.Listener.Addr().String()
	return b
}

func start(t *testing.T) *balancer.Balancer {
	t.Helper()
	b, err := balancer.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func waitReady(t *testing.T, b *balancer.Balancer, backends ...*backend) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var addresses []string
	for _, backend := range backends {
		addresses = append(addresses, backend.address)
	}
	if err := b.WaitReady(ctx, addresses...); err != nil {
		t.Fatal(err)
	}
}

// connection is one of a client, which it keeps.
type connection struct {
	*tls.Conn
	reader *bufio.Reader
}

func connect(t *testing.T, b *balancer.Balancer) *connection {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	dialed, err := dialer.DialContext(t.Context(), "tcp", b.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dialed.Close() })
	encrypted, ok := dialed.(*tls.Conn)
	if !ok {
		t.Fatalf("got a %T", dialed)
	}
	return &connection{Conn: encrypted, reader: bufio.NewReader(encrypted)}
}

// who asks on the same connection who answers.
func (c *connection) who(t *testing.T) string {
	t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	name, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(name)
}

func TestConnectionsTakeTurns(t *testing.T) {
	b := start(t)
	one, two, never := newBackend(t, "one", 200), newBackend(t, "two", 200), newBackend(t, "never", 500)
	for _, backend := range []*backend{one, never, two, one} {
		b.Add(backend.address)
	}
	waitReady(t, b, one, two)
	var got []string
	for range 4 {
		got = append(got, connect(t, b).who(t))
	}
	if want := []string{"one", "two", "one", "two"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	want := []balancer.Replica{
		{Address: one.address, Ready: true, Connections: 2},
		{Address: never.address},
		{Address: two.address, Ready: true, Connections: 2},
	}
	if got := b.Replicas(); !reflect.DeepEqual(got, want) {
		t.Errorf("replicas are %+v, want %+v", got, want)
	}
}

func TestReadinessConcernsNewConnectionsOnly(t *testing.T) {
	b := start(t)
	one, two := newBackend(t, "one", 200), newBackend(t, "two", 500)
	b.Add(one.address)
	b.Add(two.address)
	waitReady(t, b, one)
	kept := connect(t, b)
	if got := kept.who(t); got != "one" {
		t.Fatalf("%s answers, want one", got)
	}
	one.code.Store(500)
	two.code.Store(200)
	waitReady(t, b, two)
	if got := connect(t, b).who(t); got != "two" {
		t.Errorf("%s answers a new connection, want two", got)
	}
	if got := kept.who(t); got != "one" {
		t.Errorf("%s answers the old connection, want one", got)
	}
	b.Remove(one.address)
	if got := kept.who(t); got != "one" {
		t.Errorf("%s answers the old connection of a removed replica, want one", got)
	}
	if got, want := b.Ready(), []string{two.address}; !reflect.DeepEqual(got, want) {
		t.Errorf("ready are %v, want %v", got, want)
	}
}

func TestNobodyIsReady(t *testing.T) {
	b := start(t)
	one := newBackend(t, "one", 500)
	b.Add(one.address)
	expectEnd(t, b)
	if got := b.Refused(); got != 1 {
		t.Errorf("refused %d connections, want 1", got)
	}
	one.code.Store(200)
	waitReady(t, b, one)
	if got := connect(t, b).who(t); got != "one" {
		t.Errorf("%s answers, want one", got)
	}
	b.Remove(one.address)
	expectEnd(t, b)
	if got := b.Refused(); got != 2 {
		t.Errorf("refused %d connections, want 2", got)
	}
}

// expectEnd connects, and wants nothing but the end of the connection.
func expectEnd(t *testing.T, b *balancer.Balancer) {
	t.Helper()
	connection, err := net.DialTimeout("tcp", b.Address(), patience)
	if err != nil {
		return // reset so early that it was never there
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(patience))
	n, err := connection.Read(make([]byte, 1))
	var timeout net.Error
	if n > 0 || err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("read %d bytes and %v, want the end", n, err)
	}
}

// TestNoConnectionIsTriedTwice has a ready replica that ends connections instead of answering.
func TestNoConnectionIsTriedTwice(t *testing.T) {
	b := start(t)
	broken, sound := newBackend(t, "", 200), newBackend(t, "sound", 200)
	b.Add(broken.address)
	b.Add(sound.address)
	waitReady(t, b, broken, sound)
	client := connect(t, b)
	if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if response, err := http.ReadResponse(client.reader, nil); err == nil {
		response.Body.Close()
		t.Errorf("got %s, want the end of the connection", response.Status)
	}
	if got := b.Replicas(); got[0].Connections != 1 || got[1].Connections != 0 {
		t.Errorf("replicas are %+v, want one connection to the first", got)
	}
}

func TestCloseEndsConnections(t *testing.T) {
	b := start(t)
	one := newBackend(t, "one", 200)
	b.Add(one.address)
	waitReady(t, b, one)
	kept := connect(t, b)
	kept.who(t)
	b.Close()
	_ = kept.SetDeadline(time.Now().Add(patience))
	var timeout net.Error
	if _, err := kept.reader.ReadByte(); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("read from a closed balancer: %v", err)
	}
	if _, err := net.DialTimeout("tcp", b.Address(), patience); err == nil {
		t.Error("a closed balancer listens")
	}
	b.Close() // once more is harmless
}

func TestWaitReadySaysWhatIsMissing(t *testing.T) {
	b := start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the test is over"))
	err := b.WaitReady(ctx, "127.0.0.1:2", "127.0.0.1:1")
	const want = "ready replicas are [], want [127.0.0.1:1 127.0.0.1:2]: the test is over"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}
