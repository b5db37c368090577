// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/portcullis-dev/portcullis/pkg/pki"
)

const (
	certSuffix = ".crt"
	keySuffix  = ".key"
	// renewBefore is how long before its end a certificate is made anew, so that
	// one which is good at the start of a server stays good for its usual life.
	renewBefore = 30 * 24 * time.Hour
)

// keyPair is a certificate with its private key, in memory and in two files.
type keyPair struct {
	*pki.KeyPair
	certFile, keyFile string
}

func newKeyPair(base string, pair *pki.KeyPair) *keyPair {
	return &keyPair{KeyPair: pair, certFile: base + certSuffix, keyFile: base + keySuffix}
}

// loadKeyPair reads base.crt and base.key. Two files that do not belong together,
// as a crash between their writes leaves them, are an error.
func loadKeyPair(base string) (*keyPair, error) {
	certPEM, err := os.ReadFile(base + certSuffix)
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(base + keySuffix)
	if err != nil {
		return nil, err
	}
	pair, err := pki.ParseKeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	return newKeyPair(base, pair), nil
}

// save writes the key before the certificate: whoever sees the certificate finds its key.
func (p *keyPair) save() error {
	if err := pki.WritePrivate(p.keyFile, p.KeyPEM); err != nil {
		return err
	}
	return pki.WritePrivate(p.certFile, p.CertPEM)
}

// errEnding says that a certificate is at or near its end.
var errEnding = errors.New("it ends")

// check says why p cannot be kept: it is not what spec asks for, not signed by
// issuer, not valid yet, or near its end. A nil issuer stands for p itself.
func (p *keyPair) check(spec pki.Spec, issuer *keyPair, now time.Time) error {
	if issuer == nil {
		issuer = p
	}
	if err := spec.Describes(p.Cert); err != nil {
		return err
	}
	if !now.Add(renewBefore).Before(p.Cert.NotAfter) {
		return fmt.Errorf("%w on %s", errEnding, p.Cert.NotAfter.Format(time.DateOnly))
	}
	roots := x509.NewCertPool()
	roots.AddCert(issuer.Cert)
	_, err := p.Cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}
