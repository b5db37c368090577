// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/x509"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/pkg/pki"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

func testTime() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func testPlan(names ...string) plan {
	return plan{authority: "test-ca", settle: day, leaves: []leaf{{name: "tls", spec: pki.Spec{
		CommonName: "test", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, Names: names, Lifetime: leafLifetime,
	}}}}
}

func never(*x509.Certificate) bool { return false }

func mustRenew(t *testing.T, p plan, data map[string][]byte, now time.Time, everywhere func(*x509.Certificate) bool) (*contents, []string) {
	t.Helper()
	held, reasons, err := p.renewed(data, now, everywhere)
	if err != nil {
		t.Fatal(err)
	}
	verifyContents(t, held, now)
	return held, reasons
}

// verifyContents holds what is true of a Secret at any time: whoever trusts its
// bundle trusts its leaves, and what is returned is what is stored.
func verifyContents(t *testing.T, held *contents, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(held.data[bundleKey]) {
		t.Error("no authority in the bundle")
	}
	for name, pair := range held.leaves {
		if !bytes.Equal(pair.CertPEM, held.data[name+certSuffix]) || !bytes.Equal(pair.KeyPEM, held.data[name+keySuffix]) {
			t.Errorf("%s: the pair is not what is stored", name)
		}
		// The clock of a test may be behind.
		at := now
		for _, cert := range append(held.trusted, pair.Cert) {
			if at.Before(cert.NotBefore) {
				at = cert.NotBefore
			}
		}
		if _, err := pair.Cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !slices.EqualFunc(pki.Decode(held.data[bundleKey]), held.trusted, (*x509.Certificate).Equal) {
		t.Error("the bundle is not what is to be trusted")
	}
}

func TestRenewed(t *testing.T) {
	const a, b = "a.example", "b.example"
	all := []string{"ca.crt", "signer.crt", "tls.crt"}
	set := func(key, value string) func(map[string][]byte) {
		return func(data map[string][]byte) { data[key] = []byte(value) }
	}
	tests := []struct {
		name   string
		change func(data map[string][]byte)
		names  []string
		later  time.Duration
		// anew are the certificates that change, of those that there are then.
		anew []string
		// reason is part of one of the reasons.
		reason string
		// trusted is the number of authorities then; 0 means one.
		trusted int
	}{
		{name: "nothing changed"},
		{name: "empty", change: func(data map[string][]byte) { clear(data) }, anew: all, reason: "signer.crt: there is no authority that can sign"},
		{name: "leaf before two thirds of its life", later: 59 * day},
		{name: "leaf at two thirds of its life", later: 60 * day, anew: []string{"tls.crt"}, reason: "tls.crt: it ends on 2026-04-01"},
		{name: "leaf ended", later: 91 * day, anew: []string{"tls.crt"}, reason: "tls.crt: it has ended on 2026-04-01"},
		{name: "leaf damaged", change: set("tls.crt", "damaged"), anew: []string{"tls.crt"}, reason: "tls.crt: tls: "},
		{name: "key of the leaf removed", change: func(data map[string][]byte) { delete(data, "tls.key") }, anew: []string{"tls.crt"}},
		{name: "fewer names", names: []string{a}},
		{name: "another name", names: []string{b, "c.example"}, anew: []string{"tls.crt"}, reason: "c.example"},
		{name: "clock behind", later: -time.Hour, anew: []string{"tls.crt"}, reason: "tls.crt: it is not valid before 2025-12-31T23:55:00Z"},
		{name: "authority before its last year", later: 9*year - day, anew: []string{"tls.crt"}},
		{
			name: "authority in its last year", later: 9 * year, trusted: 2,
			anew: []string{"ca.crt", "next-signer.crt", "tls.crt"}, reason: "next-signer.crt: the authority ends on 2035-12-30",
		},
		{name: "authority ended", later: 10 * year, anew: all, reason: "signer.crt: it has ended on 2035-12-30"},
		{name: "authority damaged", change: set("signer.crt", "damaged"), anew: []string{"ca.crt", "signer.crt"}, trusted: 2},
		{name: "key of the authority removed", change: func(data map[string][]byte) { delete(data, "signer.key") }, anew: []string{"ca.crt", "signer.crt"}, trusted: 2},
		{name: "authority is a leaf", change: func(data map[string][]byte) {
			data["signer.crt"], data["signer.key"] = data["tls.crt"], data["tls.key"]
		}, anew: []string{"ca.crt", "signer.crt"}, trusted: 2, reason: "signer.crt: it is for CN=test"},
		{name: "authority lost with the bundle", change: func(data map[string][]byte) {
			delete(data, "signer.crt")
			delete(data, "ca.crt")
		}, anew: all, reason: "tls.crt: no authority that is trusted has signed it"},
		{name: "bundle damaged", change: set("ca.crt", "damaged"), anew: []string{"ca.crt"}},
		{name: "other data", change: set("other", "kept")},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			before, _ := mustRenew(t, testPlan(a, b), nil, testTime(), never)
			data := maps.Clone(before.data)
			if tc.change != nil {
				tc.change(data)
			}
			given := maps.Clone(data)
			if tc.names == nil {
				tc.names = []string{a, b}
			}
			p, now := testPlan(tc.names...), testTime().Add(tc.later)
			after, reasons := mustRenew(t, p, data, now, never)

			if !maps.EqualFunc(given, data, bytes.Equal) {
				t.Error("what it was given is changed")
			}
			var anew []string
			for key := range after.data {
				if strings.HasSuffix(key, certSuffix) && !bytes.Equal(after.data[key], given[key]) {
					anew = append(anew, key)
				}
			}
			slices.Sort(anew)
			if !slices.Equal(anew, tc.anew) {
				t.Errorf("made anew %v for %q, want %v", anew, reasons, tc.anew)
			}
			if (len(reasons) > 0) != (len(tc.anew) > 0) || !strings.Contains(strings.Join(reasons, "\n"), tc.reason) {
				t.Errorf("got reasons %q, want %q among them", reasons, tc.reason)
			}
			if got, want := len(after.trusted), max(1, tc.trusted); got != want {
				t.Errorf("got %d authorities, want %d", got, want)
			}
			if err := p.leaves[0].spec.Describes(after.leaves["tls"].Cert); err != nil {
				t.Error(err)
			}
			if _, again := mustRenew(t, p, after.data, now, never); len(again) > 0 {
				t.Errorf("renewed once more though nothing changed since: %q", again)
			}
		})
	}
}

// TestOneAuthorityAfterAnother follows a Secret through the change of its authority.
func TestOneAuthorityAfterAnother(t *testing.T) {
	p := testPlan("a.example")
	held, _ := mustRenew(t, p, nil, testTime(), never)
	old := held.trusted[0]
	signedBy := func(authority *x509.Certificate) bool {
		return held.leaves["tls"].Cert.CheckSignatureFrom(authority) == nil
	}
	at := func(after time.Duration, everywhere func(*x509.Certificate) bool) []string {
		t.Helper()
		var reasons []string
		held, reasons = mustRenew(t, p, held.data, testTime().Add(after), everywhere)
		return reasons
	}

	at(9*year, never)
	if len(held.trusted) != 2 || !held.trusted[0].Equal(old) || !signedBy(old) {
		t.Fatal("in its last year the old authority signs, and a new one is trusted as well")
	}
	next := held.trusted[1]
	asked := func(want *x509.Certificate) func(*x509.Certificate) bool {
		return func(got *x509.Certificate) bool {
			if !got.Equal(want) {
				t.Errorf("asked whether %s is trusted everywhere", got.SerialNumber)
			}
			return true
		}
	}
	if reasons := at(9*year+23*time.Hour, asked(next)); len(reasons) > 0 {
		t.Errorf("it signs before kube-apiserver can know it: %q", reasons)
	}
	if reasons := at(9*year+30*day, never); len(reasons) > 0 {
		t.Errorf("it signs though not everybody trusts it: %q", reasons)
	}
	at(9*year+31*day, asked(next))
	if !held.trusted[0].Equal(next) || !held.trusted[1].Equal(old) || !signedBy(old) {
		t.Error("the new authority should be the signer, and the old leaf still be good")
	}
	if held.data["next-signer.crt"] != nil || held.data["next-signer.key"] != nil {
		t.Error("the new authority is still waiting")
	}
	at(9*year+61*day, never)
	if !signedBy(next) || len(held.trusted) != 2 {
		t.Error("the next leaf should be signed by the new authority, with the old one still trusted")
	}
	at(10*year, never)
	if len(held.trusted) != 1 || !held.trusted[0].Equal(next) {
		t.Error("the old authority should be trusted until its end")
	}
}

// TestAuthorityEndsUntrusted has nobody trust the new authority in time.
func TestAuthorityEndsUntrusted(t *testing.T) {
	p := testPlan("a.example")
	held, _ := mustRenew(t, p, nil, testTime(), never)
	writes := 0
	for now := testTime().Add(9 * year); now.Before(testTime().Add(10*year - 1)); now = now.Add(6 * time.Hour) {
		var reasons []string
		if held, reasons = mustRenew(t, p, held.data, now, never); len(reasons) > 0 {
			writes++
		}
		if end := held.leaves["tls"].Cert.NotAfter; end.After(held.trusted[0].NotAfter) {
			t.Fatalf("a leaf lives until %s, longer than its authority", end)
		}
	}
	if writes > 10 {
		t.Errorf("written %d times in a year", writes)
	}
	held, _ = mustRenew(t, p, held.data, testTime().Add(10*year), never)
	if len(held.trusted) != 1 || held.leaves["tls"].Cert.CheckSignatureFrom(held.trusted[0]) != nil {
		t.Error("the new authority should sign once the old one has ended")
	}
}

// TestTwoVersions holds that replicas which want other names agree.
func TestTwoVersions(t *testing.T) {
	first, second := testPlan("a.example"), testPlan("b.example")
	held, _ := mustRenew(t, first, nil, testTime(), never)
	held, reasons := mustRenew(t, second, held.data, testTime(), never)
	if len(reasons) == 0 {
		t.Fatal("the name is missing")
	}
	if _, reasons = mustRenew(t, first, held.data, testTime(), never); len(reasons) > 0 {
		t.Errorf("they fight: %q", reasons)
	}
	held, _ = mustRenew(t, second, held.data, testTime().Add(60*day), never)
	if got := held.leaves["tls"].Cert.DNSNames; !slices.Equal(got, []string{"b.example"}) {
		t.Errorf("got names %v, want the old one gone with the old certificate", got)
	}
}

// TestBundleIsBounded damages an authority again and again.
func TestBundleIsBounded(t *testing.T) {
	p := testPlan("a.example")
	held, _ := mustRenew(t, p, nil, testTime(), never)
	for range 2 * maxTrusted {
		data := maps.Clone(held.data)
		data["signer.key"] = []byte("damaged")
		held, _ = mustRenew(t, p, data, testTime(), never)
	}
	if len(held.trusted) != maxTrusted {
		t.Errorf("got %d authorities, want %d", len(held.trusted), maxTrusted)
	}
}
