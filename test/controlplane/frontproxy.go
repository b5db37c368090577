// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import "crypto/tls"

// FrontProxyCertificate is one of the authority that vouches for kube-apiserver's
// aggregator. Its name is FrontProxyUser; certificates of other names are for tests of
// who is believed.
func (c *ControlPlane) FrontProxyCertificate(name string) (tls.Certificate, error) {
	p, err := c.credentials.frontProxy.client(name)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(p.cert, p.key)
}
