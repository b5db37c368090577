// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/pki"
)

// DefaultEtcdSecret is the name of the Secret of the certificates of an etcd.
const DefaultEtcdSecret = "portcullis-etcd" //nolint:gosec // it is the name of a Secret and no secret

const (
	etcdServer = "server"
	etcdClient = "client"
)

// EtcdOptions say for which etcd certificates are made.
type EtcdOptions struct {
	// Secrets reaches the cluster.
	Secrets    corev1client.SecretsGetter
	Namespace  string
	SecretName string
	// Names are those of the members, as clients and other members call them.
	Names []string
	// Dir is where the files of this server's client are written. It is made when
	// absent, and should be for this process alone.
	Dir string
	// Clock is clock.RealClock{}, but in tests.
	Clock clock.Clock
}

// EtcdNames are the names of the members of an etcd behind a headless Service. A
// member asks the Service's own name whether the address of another belongs to it
// (checkCertSAN in go.etcd.io/etcd/client/pkg/v3/transport).
func EtcdNames(service, namespace string) []string {
	name := service + "." + namespace + ".svc"
	return []string{name, "*." + name, name + ".cluster.local", "*." + name + ".cluster.local", "localhost", "127.0.0.1", "::1"}
}

// EtcdFiles are what a client of etcd shows and trusts. Cert and Key may be one file.
type EtcdFiles struct{ CA, Cert, Key string }

// Etcd are the certificates of an etcd with its members in Pods, which read them
// from the Secret: ca.crt, server.crt and server.key, for clients and for each
// other. This server's own are in files.
type Etcd struct {
	secret *secret
	dir    string
	loop   *loop
	// written is what the files hold.
	written map[string][]byte
}

// NewEtcd returns certificates that Ensure has to bring.
func NewEtcd(o EtcdOptions) *Etcd {
	clientAuth := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return &Etcd{
		secret: &secret{
			client: o.Secrets.Secrets(o.Namespace), namespace: o.Namespace, name: o.SecretName, clock: o.Clock,
			plan: plan{
				authority: "portcullis-etcd-ca",
				settle:    slowSettle,
				leaves: []leaf{
					// To other members a member is a client too.
					{name: etcdServer, spec: pki.Spec{
						CommonName: "portcullis-etcd", Usages: append(clientAuth, x509.ExtKeyUsageServerAuth),
						Names: o.Names, Lifetime: leafLifetime,
					}},
					{name: etcdClient, spec: pki.Spec{CommonName: "portcullis-apiserver", Usages: clientAuth, Lifetime: leafLifetime}},
				},
			},
		},
		dir:     o.Dir,
		loop:    newLoop("etcd", o.Clock),
		written: map[string][]byte{},
	}
}

// Ensure brings the certificates, making them if no replica has, and writes the
// files. It is called once, before the server connects to etcd.
func (e *Etcd) Ensure(ctx context.Context) error {
	held, err := e.secret.ensure(ctx, always)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return fmt.Errorf("directory for the certificates of etcd's client: %w", err)
	}
	return e.write(held)
}

// Run keeps the certificates and the files until ctx ends. It is called once, after
// Ensure.
func (e *Etcd) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { e.secret.follow(ctx, e.loop.wake) })
	e.loop.run(ctx, e.look)
	running.Wait()
}

func (e *Etcd) look(ctx context.Context) (wrote bool, err error) {
	held, renewed, err := e.secret.sync(ctx, always)
	if err != nil {
		return false, err
	}
	return renewed, e.write(held)
}

// Files are there once Ensure has returned. The client of etcd reads the pair for
// each connection, and the authorities when it is made.
func (e *Etcd) Files() EtcdFiles {
	pair := filepath.Join(e.dir, "client.pem")
	return EtcdFiles{CA: filepath.Join(e.dir, "ca.crt"), Cert: pair, Key: pair}
}

// write puts a certificate and its key into one file: two could be read while only
// one of them is new.
func (e *Etcd) write(held *contents) error {
	files, client := e.Files(), held.leaves[etcdClient]
	for _, file := range []struct {
		path string
		data []byte
	}{
		{files.CA, held.data[bundleKey]},
		{files.Cert, slices.Concat(client.CertPEM, client.KeyPEM)},
	} {
		if bytes.Equal(e.written[file.path], file.data) {
			continue
		}
		if err := pki.WritePrivate(file.path, file.data); err != nil {
			return fmt.Errorf("certificates of etcd's client: %w", err)
		}
		e.written[file.path] = file.data
	}
	return nil
}

// always says of an authority that time alone makes it trusted: nobody can see who
// has read a Secret.
func always(*x509.Certificate) bool { return true }
