// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/access"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/etcd"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/follow"
)

// DefaultEtcdPrefix is where in etcd a server keeps its objects.
const DefaultEtcdPrefix = "/portcullis.dev"

const (
	serverID = "portcullis-apiserver"

	// http2MaxStreams is what k8s.io/apiserver/pkg/server/options/recommended.go sets.
	http2MaxStreams = 1000
	// watchGracePeriod bounds how long a shutdown waits for watches to end.
	watchGracePeriod = 2 * time.Second
)

// StandaloneOptions are the parts that a server without a cluster around it
// stands on. All but Users and EtcdPrefix are required.
type StandaloneOptions struct {
	// Listener takes the connections; the server closes it.
	Listener net.Listener
	// ServingCert is the certificate that the server shows.
	ServingCert dynamiccertificates.CertKeyContentProvider
	// ClientCA signs the certificates of the callers.
	ClientCA dynamiccertificates.CAContentProvider
	// Users are known beside the holders of certificates of ClientCA.
	Users access.Users
	// View returns the cluster whose RBAC objects say, for each question, what
	// users may do.
	View func() cluster.View
	// Etcd says where the etcd servers are and how to reach them.
	Etcd storagebackend.TransportConfig
	// EtcdPrefix is put before all keys. Empty means DefaultEtcdPrefix.
	EtcdPrefix string
}

// NewStandaloneConfig returns the Config of a server that needs no cluster: it
// authenticates its users itself, and lets them do what the RBAC objects of its
// view allow; system:masters may do everything.
func NewStandaloneConfig(opts StandaloneOptions) (*Config, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	config, err := NewConfig()
	if err != nil {
		return nil, err
	}
	generic := config.Generic
	generic.APIServerID = serverID
	generic.ExternalAddress = opts.Listener.Addr().String()
	generic.ShutdownSendRetryAfter = true
	generic.ShutdownWatchTerminationGracePeriod = watchGracePeriod

	if err := opts.serve(generic); err != nil {
		return nil, err
	}
	opts.store(config)
	generic.Authentication.Authenticator = access.NewAuthenticator(opts.ClientCA, opts.Users)
	generic.Authorization.Authorizer, err = access.NewAuthorizer(opts.View)
	if err != nil {
		return nil, fmt.Errorf("build the authorizer: %w", err)
	}
	return config, nil
}

func (o StandaloneOptions) validate() error {
	switch {
	case o.Listener == nil:
		return errors.New("standalone server: no listener")
	case o.ServingCert == nil:
		return errors.New("standalone server: no serving certificate")
	case o.ClientCA == nil:
		return errors.New("standalone server: no client CA")
	case o.View == nil:
		return errors.New("standalone server: no view of a cluster")
	case len(o.Etcd.ServerList) == 0:
		return errors.New("standalone server: no etcd servers")
	}
	return nil
}

// serve sets secure serving and the client that the server has of itself.
func (o StandaloneOptions) serve(generic *genericapiserver.Config) error {
	serving := options.NewSecureServingOptions()
	serving.Listener = o.Listener
	serving.ServerCert.GeneratedCert = o.ServingCert
	serving.HTTP2MaxStreamsPerConnection = http2MaxStreams
	if err := serving.WithLoopback().ApplyToConfig(generic); err != nil {
		return fmt.Errorf("set up serving on %s: %w", o.Listener.Addr(), err)
	}
	if err := generic.Authentication.ApplyClientCert(o.ClientCA, generic.SecureServing); err != nil {
		return fmt.Errorf("set up client certificates: %w", err)
	}
	// Callers are asked for certificates of both authorities.
	if err := generic.Authentication.ApplyClientCert(o.Users.ClientCA, generic.SecureServing); err != nil {
		return fmt.Errorf("set up client certificates of users: %w", err)
	}
	return nil
}

// store keeps the stored kinds in etcd. No check of etcd is added to /livez and
// /readyz: a server that has read the policies judges without it.
func (o StandaloneOptions) store(config *Config) {
	prefix := cmp.Or(o.EtcdPrefix, DefaultEtcdPrefix)
	backend := storagebackend.NewDefaultConfig(prefix, config.codecs.LegacyCodec(v1alpha1.SchemeGroupVersion))
	backend.EncodeVersioner = runtime.NewMultiGroupVersioner(v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: v1alpha1.GroupName})
	backend.Transport = o.Etcd
	storage := etcd.NewStorage(*backend, config.Generic.StorageObjectCountTracker)
	config.Generic.RESTOptionsGetter = storage
	config.Generic.AddHealthzChecks(healthz.NamedCheck("etcd", func(*http.Request) error { return storage.Reachable() }))
	config.Snapshot = follow.NewSnapshot(storage, clock.RealClock{})
}
