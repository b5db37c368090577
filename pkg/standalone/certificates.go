// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/pki"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 365 * 24 * time.Hour
)

// certificates are all the certificates of a standalone server. The API server
// and etcd have an authority each: a client of the API server, the administrator
// included, can therefore not speak to etcd past the API server.
type certificates struct {
	ca      *keyPair
	serving *keyPair
	admin   *keyPair
	etcd    etcdCertificates
}

// etcdCertificates identify the embedded etcd server and its only client.
type etcdCertificates struct {
	ca     *keyPair
	server *keyPair
	client *keyPair
}

// ensureCertificates returns the certificates kept in dir. Those that are absent,
// unreadable, near their end, or not for names are made anew.
func ensureCertificates(ctx context.Context, dir string, names []string, now time.Time) (*certificates, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create directory for certificates: %w", err)
	}
	serverAuth, clientAuth := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	e := ensurer{dir: dir, now: now}
	certs := &certificates{}
	certs.ca = e.ensure(ctx, "ca", pki.Spec{CommonName: "portcullis-ca", Lifetime: authorityLifetime}, nil)
	certs.serving = e.ensure(ctx, "serving", pki.Spec{
		CommonName: "portcullis-apiserver", Usages: serverAuth, Names: names, Lifetime: leafLifetime,
	}, certs.ca)
	certs.admin = e.ensure(ctx, "admin", pki.Spec{
		CommonName: administrator, Organization: user.SystemPrivilegedGroup, Usages: clientAuth, Lifetime: leafLifetime,
	}, certs.ca)

	certs.etcd.ca = e.ensure(ctx, "etcd-ca", pki.Spec{CommonName: "portcullis-etcd-ca", Lifetime: authorityLifetime}, nil)
	certs.etcd.server = e.ensure(ctx, "etcd-server", pki.Spec{
		CommonName: "portcullis-etcd", Usages: serverAuth, Names: []string{etcdHost}, Lifetime: leafLifetime,
	}, certs.etcd.ca)
	certs.etcd.client = e.ensure(ctx, "etcd-client", pki.Spec{
		CommonName: "portcullis-apiserver", Usages: clientAuth, Lifetime: leafLifetime,
	}, certs.etcd.ca)
	return certs, e.err
}

// ensurer keeps the first error, so that a list of certificates reads as a list.
// After an error it does nothing more.
type ensurer struct {
	dir string
	now time.Time
	err error
}

// ensure returns the pair called name when it still is what spec asks for, and
// makes it anew otherwise. A nil issuer asks for an authority, which is made anew
// only when it is not there or near its end.
func (e *ensurer) ensure(ctx context.Context, name string, spec pki.Spec, issuer *keyPair) *keyPair {
	if e.err != nil {
		return nil
	}
	base := filepath.Join(e.dir, name)
	pair, err := loadKeyPair(base)
	if err == nil {
		err = pair.check(spec, issuer, e.now)
	}
	if err == nil {
		return pair
	}
	if issuer == nil && !replaceable(base, err) {
		e.err = fmt.Errorf("authority %s%s cannot be used: %w: set the clock right or restore the file with its key; "+
			"once both are removed, a new authority is made, which no kubeconfig and no webhook registration trusts yet", base, certSuffix, err)
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		klog.FromContext(ctx).Info("Making a certificate anew", "file", base+certSuffix, "reason", err.Error())
	}
	if pair, err = issue(base, spec, issuer, e.now); err != nil {
		e.err = fmt.Errorf("certificate %s: %w", base+certSuffix, err)
		return nil
	}
	return pair
}

// issue makes the pair base.crt and base.key and writes both files.
func issue(base string, spec pki.Spec, issuer *keyPair, now time.Time) (*keyPair, error) {
	var signer *pki.KeyPair
	if issuer != nil {
		signer = issuer.KeyPair
	}
	pair, err := spec.Issue(signer, now)
	if err != nil {
		return nil, err
	}
	kept := newKeyPair(base, pair)
	return kept, kept.save()
}

// replaceable says whether an authority that err is said of may be made anew. It
// is what others trust, so neither a clock set back nor a file that cannot be
// read is a reason; that it is not there or near its end is.
func replaceable(base string, err error) bool {
	if errors.Is(err, errEnding) {
		return true
	}
	_, err = os.Stat(base + certSuffix)
	return errors.Is(err, fs.ErrNotExist)
}

// servingNames are the names and addresses under which clients may call a server
// bound to ip.
func servingNames(ip net.IP) []string {
	names := []string{"localhost", "127.0.0.1", net.IPv6loopback.String()}
	if !ip.IsUnspecified() && !slices.Contains(names, ip.String()) {
		names = append(names, ip.String())
	}
	// A host without a usable name is still reached by address.
	host, err := os.Hostname()
	host = strings.ToLower(host)
	if err == nil && len(validation.IsDNS1123Subdomain(host)) == 0 && !slices.Contains(names, host) {
		names = append(names, host)
	}
	return names
}
