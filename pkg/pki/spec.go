// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// clockSkew is how far the clock of whoever verifies a certificate may be behind.
const clockSkew = 5 * time.Minute

// Spec says what a certificate is for. One without usages is an authority.
type Spec struct {
	CommonName   string
	Organization string
	Usages       []x509.ExtKeyUsage
	// Names are the DNS names, of which the first label may be *, and the IP
	// addresses of a server.
	Names    []string
	Lifetime time.Duration
}

// Describes returns why cert is not what s asks for: its subject, its usages and
// its names. Neither its time nor who has signed it is looked at.
func (s Spec) Describes(cert *x509.Certificate) error {
	if cert.IsCA != s.authority() || cert.Subject.String() != s.subject().String() {
		return fmt.Errorf("it is for %s", cert.Subject)
	}
	for _, usage := range s.Usages {
		if !slices.Contains(cert.ExtKeyUsage, usage) {
			return fmt.Errorf("it is not for the extended key usage %d", usage)
		}
	}
	for _, name := range s.Names {
		if err := cert.VerifyHostname(name); err != nil {
			return err
		}
	}
	return nil
}

// Issue makes a new pair, signed by issuer, or by itself when issuer is nil. It
// does not outlive its issuer.
func (s Spec) Issue(issuer *KeyPair, now time.Time) (*KeyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	template, err := s.template(now)
	if err != nil {
		return nil, err
	}
	parent, signer := template, crypto.Signer(key)
	if issuer != nil {
		parent, signer = issuer.Cert, issuer.Key
		if template.NotAfter.After(parent.NotAfter) {
			template.NotAfter = parent.NotAfter
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return &KeyPair{
		CertPEM: Encode(cert),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		Cert:    cert,
		Key:     key,
	}, nil
}

func (s Spec) template(now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("generate serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               s.subject(),
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(s.Lifetime),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           s.Usages,
	}
	if s.authority() {
		template.IsCA = true
		template.MaxPathLenZero = true
		template.KeyUsage |= x509.KeyUsageCertSign
		return template, nil
	}
	for _, name := range s.Names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, name)
	}
	return template, nil
}

func (s Spec) authority() bool { return len(s.Usages) == 0 }

func (s Spec) subject() pkix.Name {
	name := pkix.Name{CommonName: s.CommonName}
	if s.Organization != "" {
		name.Organization = []string{s.Organization}
	}
	return name
}
