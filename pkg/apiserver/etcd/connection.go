// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/component-base/metrics/legacyregistry"
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
	// monitorTimeout bounds what a scrape of the metrics waits for one server.
	monitorTimeout = time.Second
)

// connection is the one client of etcd, and what is known of etcd by the
// answers to it.
type connection struct {
	client    *kubernetes.Client
	compactor *compactor
	servers   string
	history   *history
	// failure is why etcd did not answer last, or nil when it has answered.
	failure atomic.Pointer[unansweredError]
}

// newConnection returns at once, whether etcd is there or not.
func newConnection(config storagebackend.TransportConfig, compactionInterval time.Duration) (*connection, error) {
	tlsConfig, err := clientTLS(config)
	if err != nil {
		return nil, err
	}
	counted := clientMetrics()
	c := &connection{servers: strings.Join(config.ServerList, ", "), history: newHistory()}
	c.failure.Store(&unansweredError{reason: "it has not answered yet"})
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
			grpc.WithChainUnaryInterceptor(noteAttempt, counted.UnaryClientInterceptor()),
			grpc.WithChainStreamInterceptor(counted.StreamClientInterceptor()),
			grpc.WithStatsHandler(connectionDoubts{c.history}),
		},
		// It would tell of every attempt.
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("client of etcd at %s: %w", c.servers, err)
	}
	c.client = client
	client.Kubernetes = boundedCalls{Interface: client.Kubernetes, connection: c}
	client.KV = patientLists{KV: etcd3.NewETCDLatencyTracker(client.KV), history: c.history}
	client.Watcher = historyWatcher{Watcher: client.Watcher, history: c.history}
	c.compactor = newCompactor(client.Client, c.history, compactionInterval)
	c.compactor.start()
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

// clientMetrics returns the metrics grpc_client_*. They are those that
// k8s.io/apiserver/pkg/storage/storagebackend/factory registers for its clients.
func clientMetrics() *grpcprom.ClientMetrics {
	metrics := grpcprom.NewClientMetrics()
	var registered prometheus.AlreadyRegisteredError
	if errors.As(legacyregistry.Registerer().Register(metrics), &registered) {
		if existing, ok := registered.ExistingCollector.(*grpcprom.ClientMetrics); ok {
			return existing
		}
	}
	return metrics
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

// keys asks for the keys from one to another, without their values, as they were
// at a revision, or are now when that is 0.
func (c *connection) keys(ctx context.Context, from, to string, revision int64) (page *clientv3.GetResponse, err error) {
	err = c.call(ctx, func(ctx context.Context) (int64, error) {
		page, err = c.client.KV.Get(ctx, from, clientv3.WithRange(to), clientv3.WithKeysOnly(), clientv3.WithLimit(versionsPage), clientv3.WithRev(revision))
		if err != nil {
			return 0, err
		}
		return page.Header.Revision, nil
	})
	return page, err
}

// monitors serves the metric apiserver_storage_size_bytes.
func (c *connection) monitors() ([]metrics.Monitor, error) {
	return []metrics.Monitor{storageMonitor{c.client.Client}}, nil
}

type storageMonitor struct{ client *clientv3.Client }

// Monitor asks one server after the other until one answers: all hold the same.
func (m storageMonitor) Monitor(ctx context.Context) (metrics.StorageMetrics, error) {
	var failures []error
	for _, endpoint := range m.client.Endpoints() {
		size, err := m.size(ctx, endpoint)
		if err == nil {
			return metrics.StorageMetrics{Size: size}, nil
		}
		failures = append(failures, err)
	}
	return metrics.StorageMetrics{}, errors.Join(failures...)
}

func (m storageMonitor) size(ctx context.Context, endpoint string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	status, err := m.client.Status(ctx, endpoint)
	if err != nil {
		return 0, fmt.Errorf("etcd at %s: %w", endpoint, err)
	}
	return status.DbSize, nil
}

// Close leaves the client to its owner.
func (storageMonitor) Close() error { return nil }
