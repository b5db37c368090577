// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package aggregated is the ground on which a server stands that a cluster's
// kube-apiserver forwards requests to: its port, the way to the cluster, and the
// proof that the cluster tells whom it forwards for.
//
// It knows nothing of the API server that runs on it and nothing of policies.
package aggregated

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portcullis-dev/portcullis/pkg/listen"
)

// DefaultNamespace is where a server keeps its leases and certificates when it is
// not told and runs in no Pod.
const DefaultNamespace = "portcullis-system"

// namespaceFile tells a Pod its namespace; rest.InClusterConfig reads its neighbours.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// What each client of kube-apiserver may ask a second. The limits are those of
// delegated authentication in k8s.io/apiserver/pkg/server/options.
const (
	clientQPS   = 200
	clientBurst = 400
)

// Options say where a server runs.
type Options struct {
	// Kubeconfig is the file that says how to reach kube-apiserver. When it is empty,
	// the service account of the Pod does.
	Kubeconfig string
	// Namespace is where the server keeps its leases and certificates; that of the
	// Pod, or DefaultNamespace, when empty.
	Namespace string
	// Identity tells this replica from the others; the name of the host when empty.
	Identity string
	// BindAddress is the IP address to listen on.
	BindAddress net.IP
	// SecurePort is the port to listen on; 0 picks a free one.
	SecurePort int
	// DataDir takes the files of certificates for etcd.
	DataDir string
	// EtcdSecret is the name of the Secret that holds the certificates of etcd and of
	// its clients; they are made when it is absent. Empty means that the server makes
	// none.
	EtcdSecret string
	// CertFile and KeyFile hold the serving certificate. When they are empty the server
	// makes one.
	CertFile, KeyFile string
}

// Environment is what an aggregated server needs to run.
type Environment struct {
	// Listener is open and not yet accepting. The API server closes it when it drains.
	Listener net.Listener
	// ServingCert is the certificate to serve with.
	ServingCert dynamiccertificates.CertKeyContentProvider
	// EtcdCAFile, EtcdCertFile and EtcdKeyFile are those of Options.EtcdSecret, or empty.
	EtcdCAFile, EtcdCertFile, EtcdKeyFile string
	// Client reaches kube-apiserver with the identity of the server.
	Client *rest.Config
	// Namespace is where the server keeps its leases and certificates.
	Namespace string
	// Identity tells this replica from the others.
	Identity string
	// URL is where clients on this machine reach the server.
	URL string

	kept []keeper
}

// Start opens the port, waits until kube-apiserver answers, which may come up after the
// server, and brings the certificates. What no waiting mends is an error: a cluster that
// does not say which proxies to believe, or that does not let the server read it.
func Start(ctx context.Context, o Options) (env *Environment, err error) {
	env = &Environment{}
	if env.Client, err = clientConfig(o.Kubeconfig); err != nil {
		return nil, err
	}
	if env.Namespace, err = namespaceOf(o); err != nil {
		return nil, err
	}
	if env.Identity, err = identityOf(o); err != nil {
		return nil, err
	}
	if env.Listener, err = listen.TCP(ctx, o.BindAddress, o.SecurePort); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, env.Close())
			env = nil
		}
	}()
	if env.URL, err = listen.LocalURL(o.BindAddress, env.Listener.Addr()); err != nil {
		return env, err
	}
	client, err := kubernetes.NewForConfig(env.Client)
	if err != nil {
		return env, fmt.Errorf("client of kube-apiserver: %w", err)
	}
	if err := waitForFrontProxy(ctx, client.CoreV1()); err != nil {
		return env, err
	}
	return env, env.useCertificates(ctx, o, client)
}

// Close gives back what Start took. The API server has closed the listener if it ran.
func (e *Environment) Close() error {
	if err := e.Listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close listener: %w", err)
	}
	return nil
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	config, err := loadConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	config.UserAgent = "portcullis-apiserver"
	return config, nil
}

func loadConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("--in-cluster: this is no Pod of a cluster (%w): name a --kubeconfig", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--in-cluster: %w", err)
	}
	return config, nil
}

func namespaceOf(o Options) (string, error) {
	if o.Namespace != "" {
		return o.Namespace, nil
	}
	if o.Kubeconfig != "" {
		return DefaultNamespace, nil
	}
	raw, err := os.ReadFile(namespaceFile)
	if err != nil {
		return "", fmt.Errorf("--namespace is not given, and the Pod does not know: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

func identityOf(o Options) (string, error) {
	if o.Identity != "" {
		return o.Identity, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("--identity is not given, and the machine has no name: %w", err)
	}
	return strings.ToLower(host), nil
}
