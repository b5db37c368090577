// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
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
	generic := config.Generic
	generic.APIServerID = serverID + "-" + opts.Identity
	generic.ExternalAddress = opts.Listener.Addr().String()
	generic.ShutdownDelayDuration = opts.ShutdownDelay
	generic.ShutdownSendRetryAfter = true
	generic.ShutdownWatchTerminationGracePeriod = watchGracePeriod
	if err := secure(generic, opts.Listener, opts.ServingCert); err != nil {
		return nil, err
	}
	generic.SecureServing.DisableHTTP2 = true
	if err := opts.delegate(generic); err != nil {
		return nil, err
	}
	storeIn(config, opts.Etcd, opts.EtcdPrefix)
	if err := opts.prioritize(config); err != nil {
		return nil, err
	}
	leaveConnections(generic)
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
	case o.Identity == "":
		return errors.New("aggregated server: no identity")
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

// requireFrontProxy refuses to believe whoever shows any certificate of an authority
// and names a user, which is what upstream's authenticator does without the names of
// the proxies. The authority itself is followed in the cluster, and until it is known
// nobody is believed.
func requireFrontProxy(authentication *genericapiserver.AuthenticationInfo) error {
	proxy := authentication.RequestHeaderConfig
	if proxy == nil || proxy.CAContentProvider == nil || proxy.AllowedClientNames == nil || len(proxy.AllowedClientNames.Value()) == 0 {
		return errors.New("the cluster names no front proxy: every certificate of its authority would speak for every user")
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

// leaveConnections has callers open new connections once the server is told to stop,
// so that they reach another replica: a kube-apiserver keeps one connection for all
// its requests, whatever a load balancer knows.
func leaveConnections(generic *genericapiserver.Config) {
	stopping := generic.ShutdownInitiatedNotify()
	build := generic.BuildHandlerChainFunc
	generic.BuildHandlerChainFunc = func(next http.Handler, config *genericapiserver.Config) http.Handler {
		return withGoaway(build(next, config), stopping)
	}
}

// withGoaway tells callers, once stopping is closed, not to use their connection any
// more. What is under way on it is answered: net/http sends GOAWAY on HTTP/2.
func withGoaway(next http.Handler, stopping <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-stopping:
			w.Header().Set("Connection", "close")
		default:
		}
		next.ServeHTTP(w, r)
	})
}
