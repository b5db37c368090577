// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestExternalEtcdValidate(t *testing.T) {
	certs := testCertificates(t).etcd
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	secure := []string{"https://etcd-0:2379", "https://[::1]:2379"}
	tests := []struct {
		name string
		etcd ExternalEtcd
		want string
	}{
		{name: "none"},
		{name: "plain", etcd: ExternalEtcd{Servers: []string{"http://127.0.0.1:2379"}, Prefix: "/registry"}},
		{name: "authorities of the system", etcd: ExternalEtcd{Servers: secure}},
		{name: "own authority", etcd: ExternalEtcd{Servers: secure, CAFile: certs.ca.certFile}},
		{name: "client certificate", etcd: ExternalEtcd{Servers: secure, CAFile: certs.ca.certFile, CertFile: certs.client.certFile, KeyFile: certs.client.keyFile}},
		{
			name: "empty list", etcd: ExternalEtcd{Servers: []string{}},
			want: "--etcd-servers is empty: name the servers, or leave it out to use the etcd inside the process",
		},
		{
			name: "not addresses", etcd: ExternalEtcd{Servers: []string{"etcd-0:2379", "https://etcd-1", "https://etcd-2:2379/path"}},
			want: `[--etcd-servers: "etcd-0:2379" is not an address such as https://etcd-0:2379, ` +
				`--etcd-servers: "https://etcd-1" is not an address such as https://etcd-0:2379, ` +
				`--etcd-servers: "https://etcd-2:2379/path" is not an address such as https://etcd-0:2379]`,
		},
		{
			name: "two schemes", etcd: ExternalEtcd{Servers: []string{"http://etcd-0:2379", "https://etcd-1:2379"}},
			want: "--etcd-servers mixes http and https: use one of them for all servers",
		},
		{
			name: "files without servers", etcd: ExternalEtcd{CAFile: "ca", CertFile: "cert", KeyFile: "key", Prefix: "/p"},
			want: "[--etcd-cafile is set without --etcd-servers: name the servers, or leave it out to use the etcd inside the process, " +
				"--etcd-certfile is set without --etcd-servers: name the servers, or leave it out to use the etcd inside the process, " +
				"--etcd-keyfile is set without --etcd-servers: name the servers, or leave it out to use the etcd inside the process, " +
				"--etcd-prefix is set without --etcd-servers: name the servers, or leave it out to use the etcd inside the process]",
		},
		{
			name: "files for http", etcd: ExternalEtcd{Servers: []string{"http://etcd-0:2379"}, CAFile: certs.ca.certFile},
			want: "--etcd-cafile, --etcd-certfile and --etcd-keyfile have no effect on http: use https in --etcd-servers",
		},
		{
			name: "no key", etcd: ExternalEtcd{Servers: secure, CertFile: certs.client.certFile},
			want: "--etcd-certfile is set without --etcd-keyfile: name the key of the certificate",
		},
		{
			name: "no certificate", etcd: ExternalEtcd{Servers: secure, KeyFile: certs.client.keyFile},
			want: "--etcd-keyfile is set without --etcd-certfile: name the certificate of the key",
		},
		{
			name: "absent file", etcd: ExternalEtcd{Servers: secure, CAFile: "/absent"},
			want: "--etcd-cafile, --etcd-certfile, --etcd-keyfile cannot be used: open /absent: no such file or directory",
		},
		{
			name: "key of another", etcd: ExternalEtcd{Servers: secure, CertFile: certs.client.certFile, KeyFile: certs.server.keyFile},
			want: "--etcd-cafile, --etcd-certfile, --etcd-keyfile cannot be used: tls: private key does not match public key",
		},
		{
			name: "no authority in the file", etcd: ExternalEtcd{Servers: secure, CAFile: empty},
			want: "--etcd-cafile " + empty + " holds no certificate",
		},
		{
			name: "prefix", etcd: ExternalEtcd{Servers: secure, Prefix: "a/b"},
			want: `--etcd-prefix "a/b" is not a path such as /portcullis.dev`,
		},
		{
			name: "everything", etcd: ExternalEtcd{Servers: secure, Prefix: "/"},
			want: `--etcd-prefix "/" is not a path such as /portcullis.dev`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if err := tc.etcd.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got error\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestStartWithExternalEtcd starts no etcd, and asks none.
func TestStartWithExternalEtcd(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), "data")
	servers := ExternalEtcd{Servers: []string{"http://127.0.0.1:1"}}
	env, err := Start(t.Context(), Options{DataDir: dataDir, BindAddress: net.IPv4(127, 0, 0, 1), Etcd: servers.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	if got := env.Etcd.ServerList; len(got) != 1 || got[0] != "http://127.0.0.1:1" {
		t.Errorf("etcd is at %v", got)
	}
	if _, err := os.Stat(filepath.Join(dataDir, "etcd")); !os.IsNotExist(err) {
		t.Errorf("an etcd was made: %v", err)
	}
	for _, file := range []string{"lock", "kubeconfig", "pki"} {
		if _, err := os.Stat(filepath.Join(dataDir, file)); err != nil {
			t.Error(err)
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := env.WaitForFailure(stopped); err != nil {
		t.Errorf("got failure %v of an etcd of others", err)
	}
}
