// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/portcullis-dev/portcullis/pkg/listen"
)

// Options says where a standalone server keeps its data and where it listens.
type Options struct {
	// DataDir holds everything that outlives the process. It is created when absent.
	DataDir string
	// BindAddress is the IP address to listen on.
	BindAddress net.IP
	// SecurePort is the port to listen on; 0 picks a free one.
	SecurePort int
	// Etcd reaches the etcd servers to store in. Without a server, one is started
	// in this process.
	Etcd storagebackend.TransportConfig
}

// Environment is the ground that a standalone API server stands on. It belongs
// to the process that holds the lock of the data dir.
type Environment struct {
	// Listener is open and not yet accepting. The API server closes it when it drains.
	Listener net.Listener
	// ServingCert is the certificate to serve with.
	ServingCert dynamiccertificates.CertKeyContentProvider
	// ClientCA is the only authority whose client certificates are to be trusted.
	ClientCA dynamiccertificates.CAContentProvider
	// Etcd reaches the etcd servers: those of the Options, or the embedded one.
	Etcd storagebackend.TransportConfig
	// URL is where clients on this machine reach the API server.
	URL string
	// Kubeconfig is the absolute path of the administrator's kubeconfig.
	Kubeconfig string

	lock    *dataDirLock
	storage *etcdServer // nil when the etcd servers are others' processes
}

// Start takes the data dir, opens the listener, makes or reads the certificates,
// starts etcd unless it is told of one, and writes the kubeconfig, in this order,
// so that the mistakes a user makes most are found first and before anything is
// written. On an error nothing is left open. The caller closes the Environment
// after the API server has stopped.
func Start(ctx context.Context, o Options) (env *Environment, err error) {
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data dir %s: %w", o.DataDir, err)
	}

	env = &Environment{}
	defer func() {
		if err != nil {
			err = errors.Join(err, env.Close())
			env = nil
		}
	}()

	if env.lock, err = lockDataDir(dir); err != nil {
		return env, err
	}
	if env.Listener, err = listen.TCP(ctx, o.BindAddress, o.SecurePort); err != nil {
		return env, err
	}
	certs, err := ensureCertificates(ctx, filepath.Join(dir, "pki"), servingNames(o.BindAddress), time.Now())
	if err != nil {
		return env, err
	}
	if err = env.useCertificates(certs); err != nil {
		return env, err
	}
	if err := context.Cause(ctx); err != nil {
		return env, err
	}
	if env.Etcd = o.Etcd; len(o.Etcd.ServerList) == 0 {
		if env.storage, err = startEtcd(ctx, filepath.Join(dir, "etcd"), certs.etcd); err != nil {
			return env, err
		}
		env.Etcd = env.storage.transport
	}
	if env.URL, err = listen.LocalURL(o.BindAddress, env.Listener.Addr()); err != nil {
		return env, err
	}
	env.Kubeconfig = filepath.Join(dir, "kubeconfig")
	return env, writeKubeconfig(env.Kubeconfig, env.URL, certs)
}

func (e *Environment) useCertificates(certs *certificates) (err error) {
	e.ServingCert, err = dynamiccertificates.NewStaticCertKeyContent("serving-cert", certs.serving.CertPEM, certs.serving.KeyPEM)
	if err != nil {
		return fmt.Errorf("serving certificate: %w", err)
	}
	e.ClientCA, err = dynamiccertificates.NewStaticCAContent("client-ca", certs.ca.CertPEM)
	if err != nil {
		return fmt.Errorf("client certificate authority: %w", err)
	}
	return nil
}

// WaitForFailure returns nil when ctx ends, or an error as soon as the embedded
// etcd stops by itself, after which nothing can be stored and the process should
// end. An etcd that others run may come back.
func (e *Environment) WaitForFailure(ctx context.Context) error {
	if e.storage == nil {
		<-ctx.Done()
		return nil
	}
	return e.storage.waitForFailure(ctx)
}

// Close stops etcd, closes the listener when the API server has not done so, and
// releases the data dir last, so that the next server finds everything at rest.
// It may be called on a partly started Environment.
func (e *Environment) Close() error {
	var errs []error
	if e.storage != nil {
		e.storage.close()
	}
	if e.Listener != nil {
		if err := e.Listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, fmt.Errorf("close listener: %w", err))
		}
	}
	if e.lock != nil {
		if err := e.lock.release(); err != nil && !errors.Is(err, os.ErrClosed) {
			errs = append(errs, fmt.Errorf("release data dir: %w", err))
		}
	}
	return errors.Join(errs...)
}
