// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

const (
	certSuffix = ".crt"
	keySuffix  = ".key"
	// renewBefore is how long before its end a certificate is made anew, so that
	// one which is good at the start of a server stays good for its usual life.
	renewBefore = 30 * 24 * time.Hour
	// clockSkew is how far the clock of a client may be behind.
	clockSkew = 5 * time.Minute
)

// keyPair is a certificate with its private key, in memory and in two files.
type keyPair struct {
	certFile, keyFile string
	certPEM, keyPEM   []byte
	cert              *x509.Certificate
	key               crypto.Signer
}

// loadKeyPair reads base.crt and base.key. Two files that do not belong together,
// as a crash between their writes leaves them, are an error.
func loadKeyPair(base string) (*keyPair, error) {
	p := &keyPair{certFile: base + certSuffix, keyFile: base + keySuffix}
	var err error
	if p.certPEM, err = os.ReadFile(p.certFile); err != nil {
		return nil, err
	}
	if p.keyPEM, err = os.ReadFile(p.keyFile); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(p.certPEM, p.keyPEM)
	if err != nil {
		return nil, err
	}
	if p.cert, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("private key of type %T cannot sign", pair.PrivateKey)
	}
	p.key = key
	return p, nil
}

// save writes the key before the certificate: whoever sees the certificate finds its key.
func (p *keyPair) save() error {
	if err := writeFile(p.keyFile, p.keyPEM); err != nil {
		return err
	}
	return writeFile(p.certFile, p.certPEM)
}

// certificateSpec says what a certificate is for. One without a usage is an authority.
type certificateSpec struct {
	commonName   string
	organization string
	usage        x509.ExtKeyUsage
	names        []string // DNS names and IP addresses of a server
}

// errEnding says that a certificate is at or near its end.
var errEnding = errors.New("it ends")

// check says why cert cannot be kept: it is not what s asks for, not signed by
// issuer, not valid yet, or near its end. A nil issuer stands for cert itself.
func (s certificateSpec) check(cert *x509.Certificate, issuer *keyPair, now time.Time) error {
	parent := cert
	usage := x509.ExtKeyUsageAny
	if issuer != nil {
		parent, usage = issuer.cert, s.usage
	}
	if cert.IsCA != (issuer == nil) || cert.Subject.String() != s.subject().String() {
		return fmt.Errorf("it is for %s", cert.Subject)
	}
	if !now.Add(renewBefore).Before(cert.NotAfter) {
		return fmt.Errorf("%w on %s", errEnding, cert.NotAfter.Format(time.DateOnly))
	}
	roots := x509.NewCertPool()
	roots.AddCert(parent)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		return err
	}
	for _, name := range s.names {
		if err := cert.VerifyHostname(name); err != nil {
			return err
		}
	}
	return nil
}

// issue makes a new pair for the files base.crt and base.key, signed by issuer,
// or by itself when issuer is nil. It does not write the files.
func (s certificateSpec) issue(base string, issuer *keyPair, now time.Time) (*keyPair, error) {
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
		parent, signer = issuer.cert, issuer.key
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
	return &keyPair{
		certFile: base + certSuffix,
		keyFile:  base + keySuffix,
		certPEM:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		cert:     cert,
		key:      key,
	}, nil
}

func (s certificateSpec) template(now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("generate serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               s.subject(),
		NotBefore:             now.Add(-clockSkew),
		BasicConstraintsValid: true,
	}
	if s.usage == x509.ExtKeyUsageAny {
		template.IsCA = true
		template.MaxPathLenZero = true
		template.NotAfter = now.Add(authorityLifetime)
		template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
		return template, nil
	}
	template.NotAfter = now.Add(leafLifetime)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{s.usage}
	for _, name := range s.names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, name)
	}
	return template, nil
}

func (s certificateSpec) subject() pkix.Name {
	name := pkix.Name{CommonName: s.commonName}
	if s.organization != "" {
		name.Organization = []string{s.organization}
	}
	return name
}
