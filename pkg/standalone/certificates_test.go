// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"bytes"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

func TestCertificates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	now := time.Now()
	certs, err := ensureCertificates(t.Context(), dir, []string{"localhost", "127.0.0.1", "::1", "192.0.2.1"}, now)
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"localhost", "127.0.0.1", "::1", "192.0.2.1"} {
		if err := certs.serving.Cert.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	subject := certs.admin.Cert.Subject
	if subject.CommonName != "portcullis-admin" || !slices.Equal(subject.Organization, []string{"system:masters"}) {
		t.Errorf("got administrator %s", subject)
	}
	for name, want := range map[string]struct {
		pair *keyPair
		days time.Duration
	}{
		"ca": {certs.ca, 3650}, "etcd-ca": {certs.etcd.ca, 3650}, "serving": {certs.serving, 365}, "admin": {certs.admin, 365},
	} {
		if got := want.pair.Cert.NotAfter.Sub(now).Round(day) / day; got != want.days {
			t.Errorf("%s: valid for %d days, want %d", name, got, want.days)
		}
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 12 {
		t.Errorf("got %d files, want 6 certificates and 6 keys: %v", len(entries), entries)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s: got mode %#o, want 0600", entry.Name(), got)
		}
	}
}

// TestCertificatesTrust pins who may speak to whom.
func TestCertificatesTrust(t *testing.T) {
	certs := testCertificates(t)
	tests := []struct {
		name   string
		cert   *keyPair
		issuer *keyPair
		usage  x509.ExtKeyUsage
		want   bool
	}{
		{name: "administrator to API server", cert: certs.admin, issuer: certs.ca, usage: x509.ExtKeyUsageClientAuth, want: true},
		{name: "API server to its clients", cert: certs.serving, issuer: certs.ca, usage: x509.ExtKeyUsageServerAuth, want: true},
		{name: "API server to etcd", cert: certs.etcd.client, issuer: certs.etcd.ca, usage: x509.ExtKeyUsageClientAuth, want: true},
		{name: "etcd to API server", cert: certs.etcd.server, issuer: certs.etcd.ca, usage: x509.ExtKeyUsageServerAuth, want: true},
		{name: "administrator to etcd", cert: certs.admin, issuer: certs.etcd.ca, usage: x509.ExtKeyUsageClientAuth},
		{name: "administrator as a server", cert: certs.admin, issuer: certs.ca, usage: x509.ExtKeyUsageServerAuth},
		{name: "serving certificate as a client", cert: certs.serving, issuer: certs.ca, usage: x509.ExtKeyUsageClientAuth},
		{name: "client of etcd to API server", cert: certs.etcd.client, issuer: certs.ca, usage: x509.ExtKeyUsageClientAuth},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			roots := x509.NewCertPool()
			roots.AddCert(tc.issuer.Cert)
			_, err := tc.cert.Cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{tc.usage}})
			if (err == nil) != tc.want {
				t.Errorf("got error %v, want trusted %t", err, tc.want)
			}
		})
	}
}

func TestCertificatesAreKeptOrMadeAnew(t *testing.T) {
	names := []string{"localhost", "127.0.0.1"}
	leaves := []string{"admin", "serving"}
	all := []string{"admin", "ca", "etcd-ca", "etcd-client", "etcd-server", "serving"}

	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		later  time.Duration
		names  []string
		anew   []string
		// refused is part of the error with which an authority that others
		// trust is left as it is.
		refused string
	}{
		{name: "nothing changed", names: names},
		{name: "fewer names", names: names[:1]},
		{name: "another address", names: append([]string{"192.0.2.1"}, names...), anew: []string{"serving"}},
		{name: "leaves long before their end", later: 334 * day, names: names},
		{name: "leaves near their end", later: 336 * day, names: names, anew: []string{"admin", "etcd-client", "etcd-server", "serving"}},
		{name: "leaves past their end", later: 400 * day, names: names, anew: []string{"admin", "etcd-client", "etcd-server", "serving"}},
		{name: "authorities near their end", later: 3621 * day, names: names, anew: all},
		{name: "clock set back", later: -day, names: names, refused: "cannot be used: x509: certificate has expired or is not yet valid"},
		{name: "authority damaged", change: overwrite("etcd-ca.crt", "damaged"), names: names, refused: "etcd-ca.crt cannot be used: "},
		{name: "key of the authority removed", change: remove("ca.key"), names: names, refused: "ca.crt cannot be used: "},
		{name: "key removed", change: remove("serving.key"), names: names, anew: []string{"serving"}},
		{name: "certificate damaged", change: overwrite("admin.crt", "damaged"), names: names, anew: []string{"admin"}},
		{name: "key of another certificate", change: copyFile("admin.key", "serving.key"), names: names, anew: []string{"serving"}},
		{name: "certificate of another purpose", change: func(t *testing.T, dir string) {
			copyFile("serving.key", "admin.key")(t, dir)
			copyFile("serving.crt", "admin.crt")(t, dir)
		}, names: names, anew: []string{"admin"}},
		{name: "authority lost", change: remove("ca.crt"), names: names, anew: append([]string{"ca"}, leaves...)},
		{name: "authority is a leaf", change: func(t *testing.T, dir string) {
			copyFile("serving.key", "ca.key")(t, dir)
			copyFile("serving.crt", "ca.crt")(t, dir)
		}, names: names, refused: "ca.crt cannot be used: it is for "},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pki")
			now := time.Now()
			if _, err := ensureCertificates(t.Context(), dir, names, now); err != nil {
				t.Fatal(err)
			}
			before := readCertificates(t, dir, all)
			if tc.change != nil {
				tc.change(t, dir)
			}
			_, err := ensureCertificates(t.Context(), dir, tc.names, now.Add(tc.later))
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got error %v, want one with %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			after := readCertificates(t, dir, all)

			var anew []string
			for _, name := range all {
				if !bytes.Equal(before[name], after[name]) {
					anew = append(anew, name)
				}
			}
			slices.Sort(tc.anew)
			if !slices.Equal(anew, tc.anew) {
				t.Errorf("made anew %v, want %v", anew, tc.anew)
			}
			if _, err := ensureCertificates(t.Context(), dir, tc.names, now.Add(tc.later)); err != nil {
				t.Fatal(err)
			}
			if again := readCertificates(t, dir, all); !bytes.Equal(again["serving"], after["serving"]) || !bytes.Equal(again["ca"], after["ca"]) {
				t.Error("made anew once more, though nothing changed since")
			}
		})
	}
}

// TestLeafEndsWithItsAuthority keeps a leaf from outliving what it is verified with.
func TestLeafEndsWithItsAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	now := time.Now()
	if _, err := ensureCertificates(t.Context(), dir, nil, now); err != nil {
		t.Fatal(err)
	}
	certs, err := ensureCertificates(t.Context(), dir, nil, now.Add(3600*day))
	if err != nil {
		t.Fatal(err)
	}
	if certs.serving.Cert.NotAfter.After(certs.ca.Cert.NotAfter) {
		t.Errorf("leaf ends on %s, after its authority on %s", certs.serving.Cert.NotAfter, certs.ca.Cert.NotAfter)
	}
}

func TestCertificatesNameTheFileThatFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "serving.key", "occupied"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := ensureCertificates(t.Context(), dir, nil, time.Now())
	if want := "certificate " + filepath.Join(dir, "serving.crt") + ": "; err == nil || !bytes.HasPrefix([]byte(err.Error()), []byte(want)) {
		t.Errorf("got error %v, want it to begin with %q", err, want)
	}
}

func TestServingNames(t *testing.T) {
	for ip, want := range map[string]bool{"192.0.2.1": true, "0.0.0.0": false, "::": false} {
		names := servingNames(net.ParseIP(ip))
		for _, always := range []string{"localhost", "127.0.0.1", "::1"} {
			if !slices.Contains(names, always) {
				t.Errorf("%s: got %v, want %s in it", ip, names, always)
			}
		}
		if slices.Contains(names, ip) != want {
			t.Errorf("%s: got %v, want the address in it: %t", ip, names, want)
		}
	}
	if host, err := os.Hostname(); err == nil && !slices.Contains(servingNames(net.IPv4zero), host) {
		t.Logf("the name of this host, %q, is not a DNS name", host)
	}
}

func readCertificates(t *testing.T, dir string, names []string) map[string][]byte {
	t.Helper()
	contents := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name+certSuffix))
		if err != nil {
			t.Fatal(err)
		}
		contents[name] = data
	}
	return contents
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func overwrite(name, content string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func copyFile(from, to string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, from))
		if err != nil {
			t.Fatal(err)
		}
		overwrite(to, string(data))(t, dir)
	}
}
