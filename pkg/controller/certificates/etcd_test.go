// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/pki"
)

func newTestEtcd(c *cluster, dir string, clock *clocktesting.FakeClock) *Etcd {
	return NewEtcd(EtcdOptions{
		Secrets: c.CoreV1(), Namespace: namespace, SecretName: DefaultEtcdSecret,
		Names: EtcdNames(DefaultEtcdSecret, namespace), Dir: dir, Clock: clock,
	})
}

// mount puts the keys of the Secret that members of etcd read into dir.
func mount(t *testing.T, c *cluster, dir string) {
	t.Helper()
	secret, err := c.CoreV1().Secrets(namespace).Get(t.Context(), DefaultEtcdSecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.crt", "server.crt", "server.key"} {
		if err := pki.WritePrivate(filepath.Join(dir, name), secret.Data[name]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEtcdFiles has clients and members of etcd, with etcd's own code, speak to
// each other through the change of certificates.
func TestEtcdFiles(t *testing.T) {
	c, clock := newCluster(), clocktesting.NewFakeClock(testTime())
	e := newTestEtcd(c, filepath.Join(t.TempDir(), "client"), clock)
	if err := e.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, member := e.Files(), t.TempDir()
	mount(t, c, member)

	// Made once, as processes do at their start.
	server := tlsConfig(t, transport.TLSInfo{
		CertFile: filepath.Join(member, "server.crt"), KeyFile: filepath.Join(member, "server.key"),
		TrustedCAFile: filepath.Join(member, "ca.crt"), ClientCertAuth: true,
	}.ServerConfig)
	client := tlsConfig(t, transport.TLSInfo{CertFile: files.Cert, KeyFile: files.Key, TrustedCAFile: files.CA}.ClientConfig)
	peer := tlsConfig(t, transport.TLSInfo{
		CertFile: filepath.Join(member, "server.crt"), KeyFile: filepath.Join(member, "server.key"), TrustedCAFile: filepath.Join(member, "ca.crt"),
	}.ClientConfig)
	stranger := &tls.Config{RootCAs: client.RootCAs, MinVersion: tls.VersionTLS12}
	for _, config := range []*tls.Config{server, client, peer, stranger} {
		config.Time = clock.Now
	}

	speak := func() (shown *x509.Certificate) {
		t.Helper()
		for _, name := range []string{"portcullis-etcd-0.portcullis-etcd.portcullis-system.svc", "portcullis-etcd.portcullis-system.svc", "127.0.0.1"} {
			for _, config := range []*tls.Config{client, peer} {
				var err error
				if shown, err = dial(server, config, name); err != nil {
					t.Errorf("%s at %s: %v", name, clock.Now(), err)
				}
			}
		}
		return shown
	}
	first := speak()
	if _, err := dial(server, stranger, "127.0.0.1"); err == nil {
		t.Error("somebody without a certificate may speak to etcd")
	}
	if _, err := dial(server, client, "portcullis-etcd.other.svc"); err == nil {
		t.Error("it answers to any name")
	}
	shown := map[string]bool{}
	for range 8 {
		clock.Step(60 * day)
		if _, err := e.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		mount(t, c, member)
		shown[speak().SerialNumber.String()] = true
	}
	if len(shown) != 8 || shown[first.SerialNumber.String()] {
		t.Errorf("got %d new certificates in 8 times 60 days", len(shown))
	}
}

// TestEtcdAuthorityLeavesTimeToRestart pins that a process which read the bundle
// half a year before an authority signs trusts it, and is trusted.
func TestEtcdAuthorityLeavesTimeToRestart(t *testing.T) {
	c, clock := newCluster(), clocktesting.NewFakeClock(testTime())
	e := newTestEtcd(c, t.TempDir(), clock)
	if err := e.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	read := map[int][]*x509.Certificate{}
	for at := 0; at < 3650+400; at += 10 {
		held, _, err := e.secret.sync(t.Context(), always)
		if err != nil {
			t.Fatal(err)
		}
		read[at] = held.trusted
		for name, pair := range held.leaves {
			if before := read[max(0, at-180)]; issuer(pair.Cert, before) == nil {
				t.Fatalf("day %d: who read the authorities half a year ago does not trust %s.crt", at, name)
			}
		}
		clock.Step(10 * day)
	}
	if read[0][0].Equal(read[4040][0]) {
		t.Error("the authority is still the first")
	}
}

func TestEtcdFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	e := newTestEtcd(newCluster(), dir, clocktesting.NewFakeClock(testTime()))
	if err := e.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %#o, want 0600", entry.Name(), info.Mode().Perm())
		}
	}
	data, err := os.ReadFile(e.Files().Key)
	if err != nil || len(entries) != 2 || strings.Count(string(data), "PRIVATE KEY-----") != 2 {
		t.Errorf("got %d files, error %v, want the authorities, and one key with its certificate", len(entries), err)
	}

	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err = newTestEtcd(newCluster(), blocked, clocktesting.NewFakeClock(testTime())).Ensure(t.Context())
	if err == nil || !strings.Contains(err.Error(), blocked) {
		t.Errorf("got error %v, want the directory in it", err)
	}
}

func tlsConfig(t *testing.T, build func() (*tls.Config, error)) *tls.Config {
	t.Helper()
	config, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// dial returns what the server has shown, once both trust each other.
func dial(server, client *tls.Config, name string) (*x509.Certificate, error) {
	near, far := net.Pipe()
	defer near.Close()
	answered := make(chan error, 1)
	go func() {
		defer far.Close()
		conn := tls.Server(far, server)
		_, err := conn.Write([]byte("hello"))
		answered <- err
	}()
	client = client.Clone()
	client.ServerName = name
	conn := tls.Client(near, client)
	// What the server makes of the client shows when it is read from.
	_, err := io.ReadAll(io.LimitReader(conn, 5))
	near.Close()
	if err := errors.Join(err, <-answered); err != nil {
		return nil, err
	}
	return conn.ConnectionState().PeerCertificates[0], nil
}
