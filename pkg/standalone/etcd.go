// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"
)

const (
	etcdHost = "127.0.0.1"
	// etcdReadyTimeout bounds the wait for the election of the only member. The
	// log has been read by then, so even a large data dir does not need it.
	etcdReadyTimeout = 30 * time.Second
)

// errStopped says that etcd ended without being asked to, and without a reason.
var errStopped = errors.New("it stopped by itself")

// etcdServer is an etcd server inside this process, with one member and one client.
type etcdServer struct {
	embedded  *embed.Etcd
	log       *etcdLog
	transport storagebackend.TransportConfig
}

// startEtcd serves the data in dir on a free loopback port, and returns when
// etcd takes writes. After an error the process should end, since etcd cannot
// always take back what it has started.
func startEtcd(ctx context.Context, dir string, certs etcdCertificates) (*etcdServer, error) {
	server := &etcdServer{log: newEtcdLog(klog.FromContext(ctx))}
	if err := server.start(etcdConfig(dir, certs, server.log)); err != nil {
		return nil, fmt.Errorf("etcd cannot serve %s: %w: repair it, restore it from a copy, or choose another --data-dir", dir, err)
	}
	if err := server.waitReady(ctx); err != nil {
		server.close()
		return nil, fmt.Errorf("etcd cannot serve %s: %w", dir, err)
	}
	endpoint := url.URL{Scheme: "https", Host: server.embedded.Clients[0].Addr().String()}
	server.transport = storagebackend.TransportConfig{
		ServerList:    []string{endpoint.String()},
		CertFile:      certs.client.certFile,
		KeyFile:       certs.client.keyFile,
		TrustedCAFile: certs.ca.certFile,
	}
	return server, nil
}

// start returns when etcd has read its files, or has met a fault in them, which
// may be in a goroutine of its own. It cannot be interrupted.
func (s *etcdServer) start(config *embed.Config) error {
	type result struct {
		embedded *embed.Etcd
		err      error
	}
	started := make(chan result, 1)
	go func() {
		embedded, err := embed.StartEtcd(config)
		started <- result{embedded, err}
	}()
	select {
	case r := <-started:
		s.embedded = r.embedded
		return r.err
	case err := <-s.log.fatal:
		return err
	}
}

// etcdConfig differs from etcd's defaults in what one member inside one process
// needs. Writes are synced to disk before they are acknowledged: etcd does so
// unless it is told otherwise.
func etcdConfig(dir string, certs etcdCertificates, log *etcdLog) *embed.Config {
	// The port is chosen anew at each start. Nobody but this process needs to know
	// it, and etcd compares advertised addresses only when it founds a cluster.
	anyPort := url.URL{Scheme: "https", Host: etcdHost + ":0"}

	config := embed.NewConfig()
	config.Name = "portcullis"
	config.Dir = filepath.Clean(dir)
	config.ListenClientUrls = []url.URL{anyPort}
	config.AdvertiseClientUrls = []url.URL{anyPort}
	// The only member has no peers, so there is no peer port to protect.
	config.ListenPeerUrls = nil
	config.AdvertisePeerUrls = []url.URL{anyPort}
	config.InitialCluster = config.InitialClusterFromName(config.Name)

	config.ClientTLSInfo.CertFile = certs.server.certFile
	config.ClientTLSInfo.KeyFile = certs.server.keyFile
	config.ClientTLSInfo.TrustedCAFile = certs.ca.certFile
	config.ClientTLSInfo.ClientCertAuth = true

	config.AutoCompactionMode = embed.CompactorModePeriodic
	config.AutoCompactionRetention = "5m"

	// The only member always wins the election; how long it waits before it stands
	// is most of the time to ready.
	config.TickMs = 20
	config.ElectionMs = 100

	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log.zap())
	return config
}

func (s *etcdServer) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, etcdReadyTimeout, fmt.Errorf("not ready after %s", etcdReadyTimeout))
	defer cancel()
	return s.wait(ctx, s.embedded.Server.ReadyNotify())
}

// waitForFailure returns nil when ctx ends, and an error when etcd ends first.
func (s *etcdServer) waitForFailure(ctx context.Context) error {
	err := s.wait(ctx, nil)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("etcd failed: %w", err)
}

// wait returns nil when done is closed, and an error when etcd or ctx ends first.
func (s *etcdServer) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case err := <-s.log.fatal:
		return err
	case err := <-s.embedded.Err():
		return cmp.Or(err, errStopped)
	case <-s.embedded.Server.StopNotify():
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close stops serving, and returns when the files are closed. An etcd that has
// met a fault is left as it is: it would wait for parts of itself that are gone.
func (s *etcdServer) close() {
	if s.log.failed.Load() {
		return
	}
	s.log.closing.Store(true)
	s.embedded.Close()
}
