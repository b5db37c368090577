// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
)

// TestStoppingServerIsLeft: a caller that keeps one connection for everything opens
// another one, and loses no request by it.
func TestStoppingServerIsLeft(t *testing.T) {
	stopping := make(chan struct{})
	server := httptest.NewUnstartedServer(withGoaway(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}), stopping))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()

	ask := func() (from net.Addr, reused bool) {
		t.Helper()
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			from, reused = info.Conn.LocalAddr(), info.Reused
		}})
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if body, err := io.ReadAll(response.Body); err != nil || string(body) != "ok" || response.ProtoMajor != 2 {
			t.Fatalf("got %q over %s, error %v", body, response.Proto, err)
		}
		return from, reused
	}
	first, _ := ask()
	if second, reused := ask(); !reused || second.String() != first.String() {
		t.Fatalf("a running server was asked over %v and then over %v, want one connection", first, second)
	}
	close(stopping)
	ask() // its answer says that the connection ends
	if last, reused := ask(); reused || last.String() == first.String() {
		t.Errorf("a stopping server is still asked over the connection %v", last)
	}
}

// coldCluster can be asked after a while, and then not again.
type coldCluster struct {
	Cluster
	err error
}

func (c *coldCluster) Ready() error { return c.err }

// TestClusterWarmsUpOnce: what is missing later must not take all servers out at once.
func TestClusterWarmsUpOnce(t *testing.T) {
	cluster := &coldCluster{err: errors.New("cold")}
	warm := warmUp(cluster)
	if err := warm(); !errors.Is(err, cluster.err) {
		t.Errorf("got error %v of a cluster that is not known, want its own", err)
	}
	cluster.err = nil
	if err := warm(); err != nil {
		t.Errorf("got error %v of a cluster that is known", err)
	}
	cluster.err = errors.New("a new kind")
	if err := warm(); err != nil {
		t.Errorf("got error %v of a cluster that was known before", err)
	}
}
