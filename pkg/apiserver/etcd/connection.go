// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/utils/clock"
)

const (
	// reconnectMaxDelay bounds the rest between two attempts to connect, which
	// gRPC would let grow to two minutes.
	reconnectMaxDelay  = time.Second
	reconnectBaseDelay = 100 * time.Millisecond
	// connectTimeout bounds one attempt. More than the time that a request is
	// given would help nobody.
	connectTimeout = 3 * time.Second
	// A connection that is silent for keepaliveTime, the least that gRPC allows,
	// must answer within keepaliveTimeout. Data that is not acknowledged for so
	// long ends it, too (TCP_USER_TIMEOUT).
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 3 * time.Second
)

// connection is the one client of etcd, and what is known of etcd by the
// answers to it.
type connection struct {
	client    *kubernetes.Client
	compactor stoppableCompactor
	servers   string
	history   *history
	// failure is why etcd did not answer last, or nil when it has answered.
	failure atomic.Pointer[unansweredError]
}

// stoppableCompactor is what etcd3.NewCompactor returns.
type stoppableCompactor interface {
	etcd3.Compactor
	Stop()
}

// newConnection returns at once, whether etcd is there or not.
func newConnection(config storagebackend.TransportConfig, compactionInterval time.Duration) (*connection, error) {
	tlsConfig, err := clientTLS(config)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.New(clientv3.Config{
		Endpoints:            config.ServerList,
		TLS:                  tlsConfig,
		DialKeepAliveTime:    keepaliveTime,
		DialKeepAliveTimeout: keepaliveTimeout,
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: reconnectBaseDelay, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectMaxDelay},
				MinConnectTimeout: connectTimeout,
			}),
			// Chained, it stands behind the client's own, which asks again.
			grpc.WithChainUnaryInterceptor(noteAttempt),
		},
		// It would tell of every attempt.
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("client of etcd at %s: %w", strings.Join(config.ServerList, ", "), err)
	}
	c := &connection{client: client, servers: strings.Join(config.ServerList, ", "), history: newHistory()}
	c.failure.Store(&unansweredError{reason: "it has not answered yet"})
	client.Kubernetes = boundedCalls{Interface: client.Kubernetes, connection: c}
	client.KV = boundedLists{KV: etcd3.NewETCDLatencyTracker(client.KV)}
	client.Watcher = historyWatcher{Watcher: client.Watcher, history: c.history}
	c.compactor = etcd3.NewCompactor(client.Client, compactionInterval, clock.RealClock{}, nil)
	metrics.SetStorageMonitorGetter(c.monitors)
	return c, nil
}

// clientTLS returns nil when no file is given: https is then verified by the
// authorities of the system, and nothing is shown to etcd. The client's
// certificate is read anew for each connection.
func clientTLS(config storagebackend.TransportConfig) (*tls.Config, error) {
	if config.CertFile == "" && config.KeyFile == "" && config.TrustedCAFile == "" {
		return nil, nil //nolint:nilnil // that is what the client of etcd wants
	}
	info := transport.TLSInfo{CertFile: config.CertFile, KeyFile: config.KeyFile, TrustedCAFile: config.TrustedCAFile}
	tlsConfig, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("certificates for etcd: %w", err)
	}
	return tlsConfig, nil
}

func (c *connection) close() {
	metrics.SetStorageMonitorGetter(func() ([]metrics.Monitor, error) { return nil, nil })
	c.compactor.Stop()
	_ = c.client.Close() // it returns that its own context has ended
}

// reachable returns why etcd did not answer when it was asked last.
func (c *connection) reachable() error {
	if failure := c.failure.Load(); failure != nil {
		return fmt.Errorf("etcd at %s does not answer: %w", c.servers, failure)
	}
	return nil
}

// monitors serves the metric apiserver_storage_size_bytes.
func (c *connection) monitors() ([]metrics.Monitor, error) {
	return []metrics.Monitor{storageMonitor{c.client.Client}}, nil
}

type storageMonitor struct{ client *clientv3.Client }

// Monitor asks the first server: all members hold the same.
func (m storageMonitor) Monitor(ctx context.Context) (metrics.StorageMetrics, error) {
	status, err := m.client.Status(ctx, m.client.Endpoints()[0])
	if err != nil {
		return metrics.StorageMetrics{}, err
	}
	return metrics.StorageMetrics{Size: status.DbSize}, nil
}

// Close leaves the client to its owner.
func (storageMonitor) Close() error { return nil }
