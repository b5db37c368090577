// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/controller/certificates"
)

// The objects of the cluster that are told whom to trust, and no others. They are
// those of artifacts/deploy.
const (
	serviceName        = "portcullis"
	apiServiceName     = "v1alpha1.policy.portcullis.dev"
	directRegistration = "portcullis-direct"
	etcdService        = "portcullis-etcd"
)

// keeper keeps certificates until ctx ends.
type keeper interface {
	Run(ctx context.Context)
}

// Run keeps what Start has made, such as certificates, until ctx ends.
func (e *Environment) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, kept := range e.kept {
		running.Go(func() { kept.Run(ctx) })
	}
	running.Wait()
}

// useCertificates brings the certificates that the server shows to its callers and to
// its etcd.
func (e *Environment) useCertificates(ctx context.Context, o Options, client kubernetes.Interface) error {
	if o.EtcdSecret != "" {
		etcd := certificates.NewEtcd(certificates.EtcdOptions{
			Secrets: client.CoreV1(), Namespace: e.Namespace, SecretName: o.EtcdSecret,
			Names: certificates.EtcdNames(etcdService, e.Namespace),
			Dir:   filepath.Join(o.DataDir, "etcd-client"), Clock: clock.RealClock{},
		})
		if err := etcd.Ensure(ctx); err != nil {
			return fmt.Errorf("--etcd-certificates-secret: %w", err)
		}
		files := etcd.Files()
		e.EtcdCAFile, e.EtcdCertFile, e.EtcdKeyFile = files.CA, files.Cert, files.Key
		e.kept = append(e.kept, etcd)
	}
	if o.CertFile != "" {
		files, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving-cert", o.CertFile, o.KeyFile)
		if err != nil {
			return fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
		}
		e.ServingCert = files // the server follows the files
		return nil
	}
	return e.makeServing(ctx, client)
}

func (e *Environment) makeServing(ctx context.Context, client kubernetes.Interface) error {
	objects, err := dynamic.NewForConfig(e.Client)
	if err != nil {
		return fmt.Errorf("client of kube-apiserver: %w", err)
	}
	serving := certificates.NewServing(certificates.ServingOptions{
		Secrets: client.CoreV1(), Objects: objects,
		Namespace: e.Namespace, SecretName: certificates.DefaultServingSecret,
		Names: certificates.ServingNames(serviceName, e.Namespace), Service: serviceName,
		APIService: apiServiceName, ValidatingWebhooks: directRegistration, MutatingWebhooks: directRegistration,
		Clock: clock.RealClock{},
	})
	if err := serving.Ensure(ctx); err != nil {
		return fmt.Errorf("serving certificate: %w", err)
	}
	e.ServingCert = serving
	e.kept = append(e.kept, serving)
	return nil
}
