// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// Certificates are files for a cluster and its clients, of one authority.
type Certificates struct {
	// CAFile is the authority; CertFile and KeyFile are for clients.
	CAFile, CertFile, KeyFile string

	serverCertFile, serverKeyFile string
}

// NewCertificates makes certificates for servers on this machine.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	dir := t.TempDir()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "etcd-ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	c := &Certificates{}
	var key crypto.Signer
	c.CAFile, _, key = writePair(t, filepath.Join(dir, "ca"), authority, authority, nil)
	c.serverCertFile, c.serverKeyFile, _ = writePair(t, filepath.Join(dir, "server"), leaf(2, x509.ExtKeyUsageServerAuth), authority, key)
	c.CertFile, c.KeyFile, _ = writePair(t, filepath.Join(dir, "client"), leaf(3, x509.ExtKeyUsageClientAuth), authority, key)
	return c
}

func (c *Certificates) server() transport.TLSInfo {
	return transport.TLSInfo{CertFile: c.serverCertFile, KeyFile: c.serverKeyFile, TrustedCAFile: c.CAFile, ClientCertAuth: true}
}

func (c *Certificates) client() transport.TLSInfo {
	return transport.TLSInfo{CertFile: c.CertFile, KeyFile: c.KeyFile, TrustedCAFile: c.CAFile}
}

func leaf(serial int64, usage x509.ExtKeyUsage) *x509.Certificate {
	usages := []x509.ExtKeyUsage{usage}
	if usage == x509.ExtKeyUsageServerAuth {
		usages = append(usages, x509.ExtKeyUsageClientAuth) // etcd calls itself
	}
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "etcd"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
}

// writePair signs a certificate, with its own key when signer is nil.
func writePair(t testing.TB, path string, certificate, authority *x509.Certificate, signer crypto.Signer) (certFile, keyFile string, key crypto.Signer) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, authority, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = path+".crt", path+".key"
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, key
}
