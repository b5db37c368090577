// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"net/http"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"
)

const (
	keys        = "/portcullis.dev/policy.portcullis.dev/"
	etcdTimeout = 10 * time.Second
)

// overwrite puts value into etcd in the place of a stored object, and waits
// until what was written before is in force.
func overwrite(name, value string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		tlsConfig, err := transport.TLSInfo{CertFile: w.Etcd.CertFile, KeyFile: w.Etcd.KeyFile, TrustedCAFile: w.Etcd.TrustedCAFile}.ClientConfig()
		if err != nil {
			t.Fatal(err)
		}
		client, err := clientv3.New(clientv3.Config{Endpoints: w.Etcd.ServerList, TLS: tlsConfig, DialTimeout: etcdTimeout, Context: t.Context()})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := client.Put(t.Context(), keys+name, value); err != nil {
			t.Fatal(err)
		}
		w.settle(t)
	}
}

// anonymous is a client without credentials.
func anonymous(t *testing.T, w *world) *http.Client {
	t.Helper()
	return clientOf(t, w.Anonymous())
}

// stranger is a client with a token that nobody knows.
func stranger(t *testing.T, w *world) *http.Client {
	t.Helper()
	config := w.Anonymous()
	config.BearerToken = "nobody-knows-this"
	return clientOf(t, config)
}

// impostor is a client without credentials that sets the headers of a proxy and
// of impersonation.
func impostor(t *testing.T, w *world) *http.Client {
	t.Helper()
	config := w.Anonymous()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return proxyHeaders{next} })
	return clientOf(t, config)
}

type proxyHeaders struct{ next http.RoundTripper }

func (p proxyHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Remote-User", "admin")
	r.Header.Set("X-Remote-Group", "system:masters")
	return p.next.RoundTrip(r)
}

func clientOf(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
