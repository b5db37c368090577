// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	cryptox509 "crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	testingclock "k8s.io/utils/clock/testing"
)

// authority signs certificates, and its own.
type authority struct {
	t           *testing.T
	certificate *cryptox509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	a.certificate, a.key = a.sign(&cryptox509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: cryptox509.KeyUsageCertSign,
	}, time.Hour)
	return a
}

// sign returns a certificate that lasts for the given time. Without a certificate
// of its own the authority signs with the new key.
func (a *authority) sign(template *cryptox509.Certificate, lasts time.Duration) (*cryptox509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(lasts)
	template.ExtKeyUsage = []cryptox509.ExtKeyUsage{cryptox509.ExtKeyUsageClientAuth}
	parent, signer := template, key
	if a.certificate != nil {
		parent, signer = a.certificate, a.key
	}
	der, err := cryptox509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := cryptox509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate, key
}

// intermediate returns an authority that a has signed.
func (a *authority) intermediate(lasts time.Duration) *authority {
	a.t.Helper()
	certificate, key := a.sign(&cryptox509.Certificate{
		Subject: pkix.Name{CommonName: "intermediate"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: cryptox509.KeyUsageCertSign,
	}, lasts)
	return &authority{t: a.t, certificate: certificate, key: key}
}

func (a *authority) caller(name string, lasts time.Duration) *cryptox509.Certificate {
	a.t.Helper()
	certificate, _ := a.sign(&cryptox509.Certificate{Subject: pkix.Name{CommonName: name}}, lasts)
	return certificate
}

// trusting is a provider whose authorities the test changes.
type trusting struct {
	dynamiccertificates.CAContentProvider // nil: nothing else is asked for

	roots *cryptox509.CertPool
}

func (p *trusting) trust(authorities ...*authority) {
	p.roots = cryptox509.NewCertPool()
	for _, a := range authorities {
		p.roots.AddCert(a.certificate)
	}
}

func (p *trusting) VerifyOptions() (cryptox509.VerifyOptions, bool) {
	return cryptox509.VerifyOptions{Roots: p.roots, KeyUsages: []cryptox509.ExtKeyUsage{cryptox509.ExtKeyUsageClientAuth}}, p.roots != nil
}

// counting counts how often it is asked.
type counting struct {
	authenticator.Request

	asked int
}

func (c *counting) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	c.asked++
	return c.Request.AuthenticateRequest(req)
}

// newCounting returns certificates of trusted, and what counts how often one is
// verified.
func newCounting(trusted *trusting) (*certificates, *counting, *testingclock.FakeClock) {
	clock := testingclock.NewFakeClock(time.Now())
	c := newCertificates(trusted, clock)
	verify := &counting{Request: c.verify}
	c.verify = verify
	return c, verify, clock
}

// show returns who the holder of the certificates is, or "" when that is unknown.
func show(t *testing.T, c *certificates, shown ...*cryptox509.Certificate) string {
	t.Helper()
	response, ok, err := c.AuthenticateRequest(&http.Request{TLS: &tls.ConnectionState{PeerCertificates: shown}})
	if !ok || err != nil {
		return ""
	}
	return response.User.GetName()
}

func TestCertificateIsVerifiedOnce(t *testing.T) {
	root := newAuthority(t, "root")
	trusted := &trusting{}
	trusted.trust(root)
	c, verify, clock := newCounting(trusted)
	jane, joe := root.caller("jane", time.Hour), root.caller("joe", time.Hour)
	for range 3 {
		if got := show(t, c, jane); got != "jane" {
			t.Fatalf("got %q, want jane", got)
		}
		if got := show(t, c, joe); got != "joe" {
			t.Fatalf("got %q, want joe", got)
		}
	}
	if verify.asked != 2 {
		t.Errorf("verified %d times, want once for each", verify.asked)
	}
	clock.Step(verifiedFor)
	show(t, c, jane)
	if verify.asked != 3 {
		t.Errorf("verified %d times after %s, want once more", verify.asked, verifiedFor)
	}
}

// TestRefusedIsNotRemembered: who is refused is verified each time.
func TestRefusedIsNotRemembered(t *testing.T) {
	trusted := &trusting{}
	trusted.trust(newAuthority(t, "root"))
	c, verify, _ := newCounting(trusted)
	stranger := newAuthority(t, "other").caller("jane", time.Hour)
	for range 2 {
		if got := show(t, c, stranger); got != "" {
			t.Fatalf("got %q, want nobody", got)
		}
	}
	if verify.asked != 2 || c.verified.Len() != 0 {
		t.Errorf("verified %d times, %d remembered; want 2 and 0", verify.asked, c.verified.Len())
	}
}

// TestAuthoritiesChange: a change of the authorities counts for the next request.
func TestAuthoritiesChange(t *testing.T) {
	root, other := newAuthority(t, "root"), newAuthority(t, "other")
	trusted := &trusting{}
	trusted.trust(root, other)
	c, _, _ := newCounting(trusted)
	jane := root.caller("jane", time.Hour)
	for _, step := range []struct {
		name  string
		trust []*authority
		want  string
	}{{"both", []*authority{root, other}, "jane"}, {"the other", []*authority{other}, ""}, {"its own again", []*authority{root}, "jane"}} {
		trusted.trust(step.trust...)
		if got := show(t, c, jane); got != step.want {
			t.Errorf("trusting %s: got %q, want %q", step.name, got, step.want)
		}
	}
	trusted.roots = nil
	if got := show(t, c, jane); got != "" {
		t.Errorf("trusting nobody: got %q, want nobody", got)
	}
}

// TestNothingIsRememberedBeyondItsEnd: neither beyond that of a certificate nor of
// one between it and the authority, nor before the time at which it was found.
func TestNothingIsRememberedBeyondItsEnd(t *testing.T) {
	const short = verifiedFor / 2
	root := newAuthority(t, "root")
	between := root.intermediate(short)
	tests := []struct {
		name  string
		shown []*cryptox509.Certificate
		step  time.Duration
		want  int // times that it is verified
	}{
		{"before the end of the caller", []*cryptox509.Certificate{root.caller("jane", short)}, short - 5*time.Second, 1},
		{"at the end of the caller", []*cryptox509.Certificate{root.caller("jane", short)}, short, 2},
		{"at the end of the one between", []*cryptox509.Certificate{between.caller("jane", time.Hour), between.certificate}, short, 2},
		{"a clock that was set back", []*cryptox509.Certificate{root.caller("jane", time.Hour)}, -time.Second, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			trusted := &trusting{}
			trusted.trust(root)
			c, verify, clock := newCounting(trusted)
			if got := show(t, c, test.shown...); got != "jane" {
				t.Fatalf("got %q, want jane", got)
			}
			clock.Step(test.step)
			show(t, c, test.shown...)
			if verify.asked != test.want {
				t.Errorf("verified %d times, want %d", verify.asked, test.want)
			}
		})
	}
}

// TestOtherChainIsVerified: the certificate of the caller alone does not do when it
// was found by way of another.
func TestOtherChainIsVerified(t *testing.T) {
	root := newAuthority(t, "root")
	between := root.intermediate(time.Hour)
	trusted := &trusting{}
	trusted.trust(root)
	c, _, _ := newCounting(trusted)
	jane := between.caller("jane", time.Hour)
	if got := show(t, c, jane, between.certificate); got != "jane" {
		t.Fatalf("with the certificate between: got %q, want jane", got)
	}
	if got := show(t, c, jane); got != "" {
		t.Errorf("without it: got %q, want nobody", got)
	}
}

func TestRememberedAreBounded(t *testing.T) {
	root := newAuthority(t, "root")
	trusted := &trusting{}
	trusted.trust(root)
	c, _, _ := newCounting(trusted)
	certificate := root.caller("jane", time.Hour)
	for range maxVerified + 10 {
		another := *certificate // as parsed anew for another connection
		show(t, c, &another)
	}
	if got := c.verified.Len(); got != maxVerified {
		t.Errorf("%d are remembered, want %d", got, maxVerified)
	}
}
