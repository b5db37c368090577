// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

const (
	etcdPrefix = "/portcullis.dev"
	serverID   = "portcullis-apiserver"

	// http2MaxStreams is what k8s.io/apiserver/pkg/server/options/recommended.go sets.
	http2MaxStreams = 1000
	// watchGracePeriod bounds how long a shutdown waits for watches to end.
	watchGracePeriod = 2 * time.Second
)

// StandaloneOptions are the parts that a server without a cluster around it
// stands on. All are required.
type StandaloneOptions struct {
	// Listener takes the connections; the server closes it.
	Listener net.Listener
	// ServingCert is the certificate that the server shows.
	ServingCert dynamiccertificates.CertKeyContentProvider
	// ClientCA signs the certificates of the callers.
	ClientCA dynamiccertificates.CAContentProvider
	// Etcd says where the etcd servers are and how to reach them.
	Etcd storagebackend.TransportConfig
}

// NewStandaloneConfig returns the Config of a server that needs no cluster: it
// authenticates client certificates itself, and only system:masters may do more
// than ask whether it is ready.
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
	if err := opts.store(generic, config.codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)); err != nil {
		return nil, err
	}
	generic.Authentication.Authenticator = newStandaloneAuthenticator(opts.ClientCA)
	generic.Authorization.Authorizer, err = newStandaloneAuthorizer()
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
	return nil
}

func (o StandaloneOptions) store(generic *genericapiserver.Config, codec runtime.Codec) error {
	backend := storagebackend.NewDefaultConfig(etcdPrefix, codec)
	backend.EncodeVersioner = runtime.NewMultiGroupVersioner(v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: v1alpha1.GroupName})
	backend.Transport = o.Etcd
	if backend.Transport.TracerProvider == nil {
		backend.Transport.TracerProvider = generic.TracerProvider
	}
	etcd := options.NewEtcdOptions(backend)
	// No garbage collector runs beside a standalone server: with it enabled, a
	// foreground or orphaning delete would wait for one for ever.
	etcd.EnableGarbageCollection = false
	if err := etcd.ApplyTo(generic); err != nil {
		return fmt.Errorf("set up storage in etcd at %v: %w", o.Etcd.ServerList, err)
	}
	return nil
}
