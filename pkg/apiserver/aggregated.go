// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apiserver/drain"
)

// authorizationTTL is how long an answer of kube-apiserver to what a caller may do
// is believed.
const authorizationTTL = 5 * time.Second

// informerResync is that of the informers that hold priorities and flows; see
// CoreAPIOptions in k8s.io/apiserver/pkg/server/options.
const informerResync = 10 * time.Minute

// AggregatedOptions say what a server behind a kube-apiserver stands on.
type AggregatedOptions struct {
	// Listener takes the connections; the server closes it.
	Listener net.Listener
	// ServingCert is the certificate that the server shows.
	ServingCert dynamiccertificates.CertKeyContentProvider
	// Kubeconfig names the file with which kube-apiserver is asked who a caller is
	// and what they may do; the service account of the Pod when empty.
	Kubeconfig string
	// Client reaches the same kube-apiserver.
	Client *rest.Config
	// Namespace is that of the Leases of the replicas.
	Namespace string
	// Identity tells this replica from the others.
	Identity string
	// Etcd says where the etcd servers are and how to reach them.
	Etcd storagebackend.TransportConfig
	// EtcdPrefix is put before all keys. Empty means DefaultEtcdPrefix.
	EtcdPrefix string
	// ShutdownDelay is how long a server that is told to stop goes on serving, not
	// ready, until nobody sends it requests any more.
	ShutdownDelay time.Duration
}

// NewAggregatedConfig returns the configuration of a server that leaves to a
// kube-apiserver who callers are and what they may do. It asks that kube-apiserver
// for the authorities of its callers, and is an error where there are none.
func NewAggregatedConfig(opts AggregatedOptions) (*Config, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	config, err := NewConfig()
	if err != nil {
		return nil, err
	}
	config.Replica = &Replica{Client: opts.Client, Namespace: opts.Namespace, Identity: opts.Identity}
	generic := config.Generic
	generic.APIServerID = serverID + "-" + opts.Identity
	generic.ExternalAddress = opts.Listener.Addr().String()
	generic.ShutdownDelayDuration = opts.ShutdownDelay
	generic.ShutdownSendRetryAfter = true
	generic.ShutdownWatchTerminationGracePeriod = watchGracePeriod
	config.drained = drain.New(opts.Listener, generic.ShutdownInitiatedNotify())
	if err := secure(generic, config.drained, opts.ServingCert); err != nil {
		return nil, err
	}
	if err := opts.delegate(generic); err != nil {
		return nil, err
	}
	config.Extra.Ready = append(config.Extra.Ready, frontProxyKnown(generic.Authentication.RequestHeaderConfig.CAContentProvider))
	storeIn(config, opts.Etcd, opts.EtcdPrefix, true)
	if err := opts.prioritize(config); err != nil {
		return nil, err
	}
	return config, nil
}

func (o AggregatedOptions) validate() error {
	switch {
	case o.Listener == nil:
		return errors.New("aggregated server: no listener")
	case o.ServingCert == nil:
		return errors.New("aggregated server: no serving certificate")
	case o.Client == nil:
		return errors.New("aggregated server: no way to kube-apiserver")
	case o.Namespace == "" || o.Identity == "":
		return errors.New("aggregated server: no namespace for its Lease, or no identity")
	case len(o.Etcd.ServerList) == 0:
		return errors.New("aggregated server: no etcd servers")
	}
	return nil
}

// delegate asks kube-apiserver who callers are and what they may do. Its own calls
// come as system:masters, about whom nobody is asked.
func (o AggregatedOptions) delegate(generic *genericapiserver.Config) error {
	authentication := options.NewDelegatingAuthenticationOptions()
	authentication.RemoteKubeConfigFile = o.Kubeconfig
	if err := authentication.ApplyTo(&generic.Authentication, generic.SecureServing, generic.OpenAPIConfig); err != nil {
		return fmt.Errorf("delegate authentication: %w", err)
	}
	if err := requireFrontProxy(&generic.Authentication); err != nil {
		return fmt.Errorf("delegate authentication: %w", err)
	}
	authorization := options.NewDelegatingAuthorizationOptions()
	authorization.RemoteKubeConfigFile = o.Kubeconfig
	authorization.AllowCacheTTL, authorization.DenyCacheTTL = authorizationTTL, authorizationTTL
	if err := authorization.ApplyTo(&generic.Authorization); err != nil {
		return fmt.Errorf("delegate authorization: %w", err)
	}
	return nil
}

// prioritize gives each caller the share of the server that the FlowSchemas of the
// cluster give them.
func (o AggregatedOptions) prioritize(config *Config) error {
	client, err := kubernetes.NewForConfig(o.Client)
	if err != nil {
		return fmt.Errorf("client of kube-apiserver: %w", err)
	}
	config.informers = informers.NewSharedInformerFactory(client, informerResync)
	features := options.NewFeatureOptions()
	features.EnableProfiling = false
	if err := features.ApplyTo(config.Generic, client, config.informers); err != nil {
		return fmt.Errorf("priority and fairness: %w", err)
	}
	return nil
}
