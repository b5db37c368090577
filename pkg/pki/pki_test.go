// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const year = 365 * 24 * time.Hour

func now() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func issue(t *testing.T, spec Spec, issuer *KeyPair) *KeyPair {
	t.Helper()
	pair, err := spec.Issue(issuer, now())
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestDescribes(t *testing.T) {
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	authority := Spec{CommonName: "ca", Lifetime: year}
	spec := Spec{CommonName: "server", Organization: "test", Usages: server, Names: []string{"a.example", "*.b.example", "192.0.2.1"}, Lifetime: year}
	ca := issue(t, authority, nil)
	leaf := issue(t, spec, ca)

	with := func(change func(*Spec)) Spec {
		other := spec
		change(&other)
		return other
	}
	tests := []struct {
		name string
		spec Spec
		cert *x509.Certificate
		want string // part of the error
	}{
		{name: "authority", spec: authority, cert: ca.Cert},
		{name: "leaf", spec: spec, cert: leaf.Cert},
		{name: "fewer names", spec: with(func(s *Spec) { s.Names = s.Names[:1] }), cert: leaf.Cert},
		{name: "a name under a wildcard", spec: with(func(s *Spec) { s.Names = []string{"x.b.example"} }), cert: leaf.Cert},
		{name: "leaf for an authority", spec: authority, cert: leaf.Cert, want: "it is for CN=server,O=test"},
		{name: "authority for a leaf", spec: with(func(s *Spec) { s.CommonName, s.Organization = "ca", "" }), cert: ca.Cert, want: "it is for CN=ca"},
		{name: "another subject", spec: with(func(s *Spec) { s.Organization = "" }), cert: leaf.Cert, want: "it is for"},
		{name: "another usage", spec: with(func(s *Spec) { s.Usages = append(server, x509.ExtKeyUsageClientAuth) }), cert: leaf.Cert, want: "usage 2"},
		{name: "another name", spec: with(func(s *Spec) { s.Names = []string{"c.example"} }), cert: leaf.Cert, want: "c.example"},
		{name: "another address", spec: with(func(s *Spec) { s.Names = []string{"192.0.2.2"} }), cert: leaf.Cert, want: "192.0.2.2"},
		{name: "another wildcard", spec: with(func(s *Spec) { s.Names = []string{"*.c.example"} }), cert: leaf.Cert, want: "*.c.example"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.spec.Describes(tc.cert)
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestIssue(t *testing.T) {
	ca := issue(t, Spec{CommonName: "ca", Lifetime: year}, nil)
	leaf := issue(t, Spec{CommonName: "client", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Lifetime: 2 * year}, ca)
	if err := leaf.Cert.CheckSignatureFrom(ca.Cert); err != nil {
		t.Error(err)
	}
	if !leaf.Cert.NotAfter.Equal(ca.Cert.NotAfter) {
		t.Errorf("it ends on %s, its authority on %s", leaf.Cert.NotAfter, ca.Cert.NotAfter)
	}
	if !leaf.Cert.NotBefore.Equal(now().Add(-clockSkew)) {
		t.Errorf("it is valid from %s", leaf.Cert.NotBefore)
	}

	again, err := ParseKeyPair(leaf.CertPEM, leaf.KeyPEM)
	if err != nil || !again.Cert.Equal(leaf.Cert) {
		t.Errorf("it is not what can be read again: %v", err)
	}
	if _, err := ParseKeyPair(leaf.CertPEM, ca.KeyPEM); err == nil {
		t.Error("a key of another certificate is taken")
	}
	bundle := append([]byte("a comment\n"), Encode(ca.Cert, leaf.Cert)...)
	bundle = append(bundle, ca.KeyPEM...)
	if got := Decode(bundle); len(got) != 2 || !got[0].Equal(ca.Cert) || !got[1].Equal(leaf.Cert) {
		t.Errorf("got %d certificates, want the two", len(got))
	}
}

func TestWritePrivate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if err := os.WriteFile(path, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WritePrivate(path, []byte("after")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(data, []byte("after")) {
		t.Errorf("got %q, error %v", data, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, error %v, want 0600", info.Mode(), err)
	}
	if err := WritePrivate(dir, []byte("x")); err == nil {
		t.Error("a directory is replaced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("got %v, error %v, want one file", entries, err)
	}
}
