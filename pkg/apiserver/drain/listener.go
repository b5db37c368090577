// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
)

// The limits of connections are those of SecureServingInfo.Serve in
// k8s.io/apiserver/pkg/server, but for two.
const (
	maxHeaderBytes    = 1 << 20
	readHeaderTimeout = 32 * time.Second
	maxFrameSize      = 256 << 10
	// closeTimeout is upstream's, of servers that tell late callers to retry.
	closeTimeout = 2 * time.Second

	// idleTimeout is longer than the 90 s of Go's clients: they close connections that
	// nobody uses, and never send a request into one that is being closed.
	idleTimeout = 3 * time.Minute
	// maxStreams bounds the requests that wait for a server that hangs: a client with as
	// many on one connection opens another, which leads to another server. It must not be
	// less than what Go's clients take for granted until they have read the settings of a
	// new connection: what is more than these allow is refused, and lost as above.
	maxStreams = 100
)

// Listener is what a generic API server serves from. It gives no connections away, and
// serves them itself.
type Listener struct {
	port     net.Listener
	stopping <-chan struct{}

	handler http.Handler
	secure  *genericapiserver.SecureServingInfo

	start, end  sync.Once
	failed      chan error
	closed      chan struct{}
	server      *http.Server
	connections connections
}

// New returns a listener that serves on port. Once stopping is closed, callers are
// asked to go elsewhere, and all that they have sent is answered.
func New(port net.Listener, stopping <-chan struct{}) *Listener {
	return &Listener{port: port, stopping: stopping, failed: make(chan error, 1), closed: make(chan struct{})}
}

// Serve says what to serve, and with which certificates. It must be called before the
// generic server runs.
func (l *Listener) Serve(handler http.Handler, secure *genericapiserver.SecureServingInfo) {
	l.handler, l.secure = handler, secure
}

// Addr is where the listener listens.
func (l *Listener) Addr() net.Addr { return l.port.Addr() }

// Accept serves until Close.
func (l *Listener) Accept() (net.Conn, error) {
	l.start.Do(l.serve)
	select {
	case err := <-l.failed:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close stops listening, and waits for callers to leave, for a while.
func (l *Listener) Close() error {
	l.start.Do(func() {}) // not any more
	l.end.Do(func() {
		close(l.closed)
		if l.server == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout) //nolint:forbidigo // a listener has no caller with one
		defer cancel()
		if err := l.server.Shutdown(ctx); err != nil {
			klog.ErrorS(err, "Connections were still in use when the server was stopped")
		}
	})
	if err := l.port.Close(); err != nil && l.server == nil {
		return err
	}
	return nil // the port was closed first of all
}

func (l *Listener) serve() {
	server := &http.Server{
		Handler:           l.withoutReuse(l.handler),
		MaxHeaderBytes:    maxHeaderBytes,
		IdleTimeout:       idleTimeout,
		ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog:          log.New(errorLog{}, "", 0),
		TLSConfig:         l.tlsConfig(),
	}
	if err := l.serveStreams(server); err != nil {
		l.failed <- err
		return
	}
	l.server = server
	go func() { l.failed <- server.Serve(tls.NewListener(l.port, server.TLSConfig)) }()
	go func() {
		select {
		case <-l.stopping:
			l.connections.leave()
		case <-l.closed:
		}
	}()
}

// serveStreams has server serve HTTP/2 on connections of this package.
//
//nolint:staticcheck // net/http gives connections of others no HTTP/2; k8s.io/apiserver uses this package, too
func (l *Listener) serveStreams(server *http.Server) error {
	streams := &http2.Server{
		IdleTimeout:                  idleTimeout,
		MaxUploadBufferPerStream:     maxFrameSize,
		MaxReadFrameSize:             maxFrameSize,
		MaxConcurrentStreams:         maxStreams,
		MaxUploadBufferPerConnection: maxFrameSize * maxStreams,
	}
	if err := http2.ConfigureServer(server, streams); err != nil {
		return fmt.Errorf("HTTP/2: %w", err)
	}
	if server.TLSNextProto == nil {
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	server.TLSNextProto[http2.NextProtoTLS] = func(server *http.Server, conn *tls.Conn, handler http.Handler) {
		followed := l.connections.add(conn)
		defer l.connections.remove(followed)
		streams.ServeConn(followed, &http2.ServeConnOpts{Context: contextOf(handler), Handler: handler, BaseConfig: server})
	}
	return nil
}

// contextOf is that of a connection: net/http hands it over in this way, see
// ConfigureServer in golang.org/x/net/http2.
func contextOf(handler http.Handler) context.Context {
	if based, ok := handler.(interface{ BaseContext() context.Context }); ok {
		return based.BaseContext()
	}
	return nil // ServeConn then uses one of its own
}

// tlsConfig follows the certificates, which the generic server keeps up to date.
func (l *Listener) tlsConfig() *tls.Config {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{http2.NextProtoTLS, "http/1.1"},
		// Certificates are verified with each request. Callers are not told by which
		// authorities: one that connects before these are known would show no certificate,
		// for as long as the connection lasts.
		ClientAuth: tls.RequestClientCert,
	}
	certificates := dynamiccertificates.NewDynamicServingCertificateController(config, nil, l.secure.Cert, l.secure.SNICerts, nil)
	if l.secure.Cert != nil {
		l.secure.Cert.AddListener(certificates)
	}
	for _, named := range l.secure.SNICerts {
		named.AddListener(certificates)
	}
	if err := certificates.RunOnce(); err != nil {
		klog.ErrorS(err, "No certificate to serve with yet")
	}
	go certificates.Run(1, l.closed)
	config.GetConfigForClient = certificates.GetConfigForClient
	return config
}

// withoutReuse tells callers that send one request after the other not to use their
// connection any more, once the server is told to stop.
func (l *Listener) withoutReuse(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 {
			select {
			case <-l.stopping:
				w.Header().Set("Connection", "close")
			default:
			}
		}
		next.ServeHTTP(w, r)
	})
}

// errorLog takes what net/http complains of. That a handshake fails is nothing new to
// a server that others look at.
type errorLog struct{}

func (errorLog) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	if strings.Contains(text, "TLS handshake error") {
		klog.V(5).Info(text)
	} else {
		klog.Info(text)
	}
	return len(p), nil
}
