// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// FrontProxyUser is the name in the certificate of kube-apiserver's aggregator.
const FrontProxyUser = "front-proxy-client"

const controllerManagerUser = "system:kube-controller-manager"

// credentials are the authorities, certificates and keys of a control plane. As
// in a cluster of kubeadm, each authority vouches for one thing: users, the
// aggregator, and access to etcd.
type credentials struct {
	cluster, frontProxy, etcd *authority

	etcdServer, etcdClient pairFiles
	apiServer              pairFiles
	frontProxyClient       pairFiles
	controllerManager      pairFiles
	// serviceAccountKey signs the tokens of service accounts, serviceAccountPublic verifies them.
	serviceAccountKey, serviceAccountPublic string
}

func newCredentials(dir string) (*credentials, error) {
	c := &credentials{}
	for name, to := range map[string]**authority{"cluster-ca": &c.cluster, "front-proxy-ca": &c.frontProxy, "etcd-ca": &c.etcd} {
		a, err := newAuthority(dir, name)
		if err != nil {
			return nil, fmt.Errorf("make %s: %w", name, err)
		}
		*to = a
	}
	for _, wanted := range []struct {
		file string
		to   *pairFiles
		make func() (pair, error)
	}{
		{"etcd-server", &c.etcdServer, func() (pair, error) { return c.etcd.server("etcd") }},
		{"etcd-client", &c.etcdClient, func() (pair, error) { return c.etcd.client("kube-apiserver") }},
		{"kube-apiserver", &c.apiServer, func() (pair, error) {
			return c.cluster.server("kube-apiserver", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
		}},
		{"front-proxy-client", &c.frontProxyClient, func() (pair, error) { return c.frontProxy.client(FrontProxyUser) }},
		{"kube-controller-manager", &c.controllerManager, func() (pair, error) { return c.cluster.server("kube-controller-manager") }},
	} {
		p, err := wanted.make()
		if err != nil {
			return nil, err
		}
		if *wanted.to, err = p.write(dir, wanted.file); err != nil {
			return nil, err
		}
	}
	return c, c.writeServiceAccountKeys(dir)
}

func (c *credentials) writeServiceAccountKeys(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	c.serviceAccountKey, c.serviceAccountPublic = filepath.Join(dir, "service-account.key"), filepath.Join(dir, "service-account.pub")
	if err := os.WriteFile(c.serviceAccountKey, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(c.serviceAccountPublic, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600)
}

// httpClient returns a client for a server of a, which shows the certificate of files, if any.
func (a *authority) httpClient(files *pairFiles) (*http.Client, error) {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if files != nil {
		certificate, err := tls.LoadX509KeyPair(files.cert, files.key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}, nil
}
