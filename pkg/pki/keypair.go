// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes private keys and the certificates for them, says whether a
// certificate is what it should be, and writes files that only their owner reads.
//
// It keeps nothing: where certificates are stored, and when one is made anew, is
// decided by those who use it.
package pki

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// KeyPair is a certificate with its private key.
type KeyPair struct {
	// CertPEM and KeyPEM are what to store and what to show.
	CertPEM, KeyPEM []byte
	Cert            *x509.Certificate
	Key             crypto.Signer
}

// ParseKeyPair reads a certificate and its key. Two that do not belong together
// are an error.
func ParseKeyPair(certPEM, keyPEM []byte) (*KeyPair, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("private key of type %T cannot sign", pair.PrivateKey)
	}
	return &KeyPair{CertPEM: certPEM, KeyPEM: keyPEM, Cert: cert, Key: key}, nil
}

// Encode writes certificates one after the other as PEM.
func Encode(certs ...*x509.Certificate) []byte {
	var out []byte
	for _, cert := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
	}
	return out
}

// Decode returns the certificates in data. What is no certificate is passed over.
func Decode(data []byte) []*x509.Certificate {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			certs = append(certs, cert)
		}
	}
	return certs
}
