// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func testCertificates(t *testing.T) *certificates {
	t.Helper()
	certs, err := ensureCertificates(t.Context(), filepath.Join(t.TempDir(), "pki"), []string{"localhost"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return certs
}

func startTestEtcd(t *testing.T, dir string, certs etcdCertificates) *etcdServer {
	t.Helper()
	began := time.Now()
	server, err := startEtcd(t.Context(), dir, certs)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("etcd ready after %s", time.Since(began))
	return server
}

func etcdClient(t *testing.T, server *etcdServer, tls transport.TLSInfo) *clientv3.Client {
	t.Helper()
	config, err := tls.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: server.transport.ServerList, TLS: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func ownTLS(server *etcdServer) transport.TLSInfo {
	return transport.TLSInfo{
		CertFile:      server.transport.CertFile,
		KeyFile:       server.transport.KeyFile,
		TrustedCAFile: server.transport.TrustedCAFile,
	}
}

func TestEtcdKeepsDataOverRestart(t *testing.T) {
	certs := testCertificates(t)
	dir := filepath.Join(t.TempDir(), "etcd")

	first := startTestEtcd(t, dir, certs.etcd)
	if _, err := etcdClient(t, first, ownTLS(first)).Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	first.close()

	second := startTestEtcd(t, dir, certs.etcd)
	defer second.close()
	if first.transport.ServerList[0] == second.transport.ServerList[0] {
		t.Logf("the same port was picked twice: %s", second.transport.ServerList[0])
	}
	got, err := etcdClient(t, second, ownTLS(second)).Get(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Errorf("after a restart: got %v, want the stored value", got.Kvs)
	}
}

func TestEtcdServesOnlyItsClient(t *testing.T) {
	certs := testCertificates(t)
	server := startTestEtcd(t, filepath.Join(t.TempDir(), "etcd"), certs.etcd)
	defer server.close()

	tests := []struct {
		name    string
		tls     transport.TLSInfo
		allowed bool
	}{
		{name: "the API server", tls: ownTLS(server), allowed: true},
		{name: "no certificate", tls: transport.TLSInfo{TrustedCAFile: certs.etcd.ca.certFile}},
		{name: "the administrator of the API server", tls: transport.TLSInfo{
			TrustedCAFile: certs.etcd.ca.certFile, CertFile: certs.admin.certFile, KeyFile: certs.admin.keyFile,
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			// A refused client retries until its context ends.
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if !tc.allowed {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			defer cancel()
			_, err := etcdClient(t, server, tc.tls).Get(ctx, "key")
			if (err == nil) != tc.allowed {
				t.Errorf("got error %v, want allowed %t", err, tc.allowed)
			}
		})
	}
}

func TestEtcdHasOneLoopbackPort(t *testing.T) {
	certs := testCertificates(t)
	server := startTestEtcd(t, filepath.Join(t.TempDir(), "etcd"), certs.etcd)
	defer server.close()

	if got := len(server.embedded.Clients); got != 1 {
		t.Errorf("got %d client listeners, want 1", got)
	}
	if got := len(server.embedded.Peers); got != 0 {
		t.Errorf("got %d peer listeners, want none", got)
	}
	if config := server.embedded.Config(); config.UnsafeNoFsync {
		t.Error("writes are not synced to disk")
	}
}

func TestEtcdReportsDamagedData(t *testing.T) {
	certs := testCertificates(t)
	dir := filepath.Join(t.TempDir(), "etcd")
	startTestEtcd(t, dir, certs.etcd).close()
	if err := os.WriteFile(filepath.Join(dir, "member", "snap", "db"), []byte("not a database"), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := startEtcd(t.Context(), dir, certs.etcd)
	if err == nil {
		server.close()
		t.Fatal("started on damaged data")
	}
	want := fmt.Sprintf("etcd cannot serve %s: failed to open database: invalid database: repair it, restore it from a copy, or choose another --data-dir", dir)
	if err.Error() != want {
		t.Errorf("got error\n%s\nwant\n%s", err, want)
	}
}

func TestEtcdFailureIsSeen(t *testing.T) {
	certs := testCertificates(t)
	server := startTestEtcd(t, filepath.Join(t.TempDir(), "etcd"), certs.etcd)
	defer server.close()

	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.waitForFailure(stopped); err != nil {
		t.Errorf("a healthy server: got error %v, want none", err)
	}
	server.embedded.Server.HardStop()
	if err := server.waitForFailure(t.Context()); err == nil {
		t.Error("a stopped server: got no error")
	}
}
