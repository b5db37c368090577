// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	cryptox509 "crypto/x509"
	"net/http"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// maxVerified bounds how many callers are remembered. Those who are forgotten
	// are verified again.
	maxVerified = 1024
	// verifiedFor bounds how long a caller is remembered.
	verifiedFor = time.Minute
)

// certificates knows callers by certificates that authority has signed.
//
// That a certificate is signed is found once a minute and not for each request.
// Nothing is believed that would not be found anew: a finding holds for exactly
// the certificates that were shown, for exactly the authorities that were
// trusted, and for as long as none of the certificates in between expires. That
// the caller holds the key is shown to each connection.
type certificates struct {
	authority dynamiccertificates.CAContentProvider
	verify    authenticator.Request
	clock     clock.PassiveClock
	verified  *lru.Cache // of finding by the certificate of the caller
}

// finding is who somebody is.
type finding struct {
	response *authenticator.Response
	// shown are the certificates, that of the caller first. Those of a connection
	// stay the same.
	shown []*cryptox509.Certificate
	// roots are the authorities that were trusted. A provider has others, and not
	// the same with other content, when it changes.
	roots        *cryptox509.CertPool
	since, until time.Time
}

func newCertificates(authority dynamiccertificates.CAContentProvider, clock clock.PassiveClock) *certificates {
	return &certificates{
		authority: authority,
		verify:    x509.NewDynamic(authority.VerifyOptions, x509.CommonNameUserConversion),
		clock:     clock,
		verified:  lru.New(maxVerified),
	}
}

// AuthenticateRequest implements authenticator.Request.
func (c *certificates) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	shown := req.TLS.PeerCertificates
	trusted, ok := c.authority.VerifyOptions() // before it is verified: if the authorities change meanwhile, the finding is of no use
	if !ok {
		return nil, false, nil
	}
	if known, ok := c.lookUp(shown); ok && known.roots == trusted.Roots {
		return known.response, true, nil
	}
	response, ok, err := c.verify.AuthenticateRequest(req)
	if err == nil && ok {
		c.remember(shown, trusted, response)
	}
	return response, ok, err
}

func (c *certificates) lookUp(shown []*cryptox509.Certificate) (finding, bool) {
	stored, ok := c.verified.Get(shown[0])
	if !ok {
		return finding{}, false
	}
	known, ok := stored.(finding)
	now := c.clock.Now()
	return known, ok && slices.Equal(known.shown, shown) && !now.Before(known.since) && now.Before(known.until)
}

// remember keeps what was found until it may have changed.
func (c *certificates) remember(shown []*cryptox509.Certificate, trusted cryptox509.VerifyOptions, response *authenticator.Response) {
	if trusted.Intermediates == nil {
		trusted.Intermediates = cryptox509.NewCertPool()
		for _, intermediate := range shown[1:] {
			trusted.Intermediates.AddCert(intermediate)
		}
	}
	chains, err := shown[0].Verify(trusted)
	if err != nil || len(chains) == 0 {
		return // the authorities have changed meanwhile
	}
	now := c.clock.Now().Round(0) // the time of day, by which certificates expire, and no other
	known := finding{response: response, shown: shown, roots: trusted.Roots, since: now, until: now.Add(verifiedFor)}
	for _, certificate := range chains[0] {
		if certificate.NotAfter.Before(known.until) {
			known.until = certificate.NotAfter
		}
	}
	c.verified.Add(shown[0], known)
}
