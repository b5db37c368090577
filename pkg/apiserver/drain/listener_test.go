// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"

	"github.com/portcullis-dev/portcullis/pkg/apiserver/drain"
)

const patience = time.Minute

// world is a generic server's HTTP server on a listener of this package.
type world struct {
	url      string
	stopping chan struct{} // closed when callers are to leave
	stop     chan struct{} // closed when the server is to end
	ended    <-chan struct{}
}

func serve(t *testing.T, handler http.Handler) *world {
	t.Helper()
	return serveTo(t, handler, nil)
}

// serveTo serves callers whose authority is this one.
func serveTo(t *testing.T, handler http.Handler, callers dynamiccertificates.CAContentProvider) *world {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	content, err := dynamiccertificates.NewStaticCertKeyContent("test", cert, key)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{url: "https://" + port.Addr().String(), stopping: make(chan struct{}), stop: make(chan struct{})}
	listener := drain.New(port, w.stopping)
	secure := &genericapiserver.SecureServingInfo{Listener: listener, Cert: content, ClientCA: callers}
	listener.Serve(handler, secure)
	if w.ended, _, err = secure.Serve(http.NotFoundHandler(), patience, w.stop); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(w.stop)
		select {
		case <-w.ended:
		case <-time.After(patience):
			t.Error("the server does not end")
		}
		if left, err := net.Dial("tcp", port.Addr().String()); err == nil {
			left.Close()
			t.Error("the port is still open")
		}
	})
	return w
}

// client speaks HTTP/2, or HTTP/1.1 only.
func client(t *testing.T, http2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: http2, MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// ask sends a request. A body cannot be sent again, as that of a reverse proxy.
func ask(client *http.Client, method, url string, trace *httptrace.ClientTrace) (*http.Response, error) {
	var body io.Reader
	if method == http.MethodPost {
		body = io.NopCloser(strings.NewReader(strings.Repeat("x", 1000)))
	}
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		return nil, err
	}
	if trace != nil {
		request = request.WithContext(httptrace.WithClientTrace(request.Context(), trace))
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response, err
}

var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(w, r.Body)
})

// TestRequestsOnTheirWayAreAnswered: what a client of HTTP/2 sends before it has heard
// that the server stops is answered.
func TestRequestsOnTheirWayAreAnswered(t *testing.T) {
	w := serve(t, echo)
	c := connect(t, w)
	c.send(t, 1)
	c.receive(t, 1)
	close(w.stopping)
	if last := c.awaitGoAway(t); last != 1<<31-1 {
		t.Errorf("the server takes leave after stream %d: what was sent since is lost", last)
	}
	for _, stream := range []uint32{3, 5} {
		c.send(t, stream)
		c.receive(t, stream)
	}
}

// TestNoRequestOneByOneIsLost: callers of HTTP/1.1 that send without a pause, and do not
// send again, lose no request when the server is told to stop.
func TestNoRequestOneByOneIsLost(t *testing.T) {
	w := serve(t, echo)
	client := client(t, false)
	var answered, closed atomic.Int64
	var asking sync.WaitGroup
	enough := make(chan struct{})
	for range 8 {
		asking.Go(func() {
			for {
				select {
				case <-enough:
					return
				default:
				}
				response, err := ask(client, http.MethodPost, w.url, nil)
				if err != nil || response.StatusCode != http.StatusOK || response.ProtoMajor != 1 {
					t.Errorf("a request is lost: %v, %v", response, err)
					return
				}
				if response.Close {
					closed.Add(1)
				}
				answered.Add(1)
			}
		})
	}
	waitFor(t, "requests", func() bool { return answered.Load() > 200 || t.Failed() })
	if closed.Load() != 0 {
		t.Error("a running server closes connections")
	}
	close(w.stopping)
	waitFor(t, "connections that are closed", func() bool { return closed.Load() > 50 || t.Failed() })
	close(enough)
	asking.Wait()
}

// TestIdleConnectionIsLeft: a connection that nobody uses at the moment is not used
// afterwards, and one that comes late is used once.
func TestIdleConnectionIsLeft(t *testing.T) {
	w := serve(t, echo)
	client := client(t, true)
	use := func() (from string, reused bool) {
		t.Helper()
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			from, reused = info.Conn.LocalAddr().String(), info.Reused
		}}
		if response, err := ask(client, http.MethodGet, w.url, trace); err != nil || response.ProtoMajor != 2 {
			t.Fatalf("got %v, error %v", response, err)
		}
		return from, reused
	}
	first, _ := use()
	if second, reused := use(); !reused || second != first {
		t.Fatalf("a running server was asked over %s and then over %s, want one connection", first, second)
	}
	close(w.stopping)
	// The client hears of it on its own; it is not told at once.
	last := first
	waitFor(t, "another connection", func() bool { last, _ = use(); return last != first })
	for range 3 {
		waitFor(t, "yet another connection", func() bool {
			next, _ := use()
			defer func() { last = next }()
			return next != last
		})
	}
}

// TestCallersShowTheirCertificate: one that connects while its authority is not known
// yet is known by its certificate as soon as that is.
func TestCallersShowTheirCertificate(t *testing.T) {
	other, _, err := certutil.GenerateSelfSignedCertKey("another authority", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	known, err := dynamiccertificates.NewStaticCAContent("test", other)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan int, 1)
	w := serveTo(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { shown <- len(r.TLS.PeerCertificates) }), known)
	cert, key, err := certutil.GenerateSelfSignedCertKey("front-proxy", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	if _, err := ask(&http.Client{Transport: transport, Timeout: patience}, http.MethodGet, w.url, nil); err != nil {
		t.Fatal(err)
	}
	if got := <-shown; got == 0 {
		t.Error("the caller has shown no certificate")
	}
}

// TestWhatIsUnderWayIsAnswered: a request that takes long is answered after the server
// was told to stop, and before it has ended.
func TestWhatIsUnderWayIsAnswered(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	w := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(began)
		<-finish
	}))
	client := client(t, true)
	answer := make(chan error, 1)
	go func() {
		_, err := ask(client, http.MethodPost, w.url, nil)
		answer <- err
	}()
	<-began
	close(w.stopping)
	close(finish)
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}
