// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/access"
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
	storeIn(config, opts.Etcd, opts.EtcdPrefix, false)
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
	if err := secure(generic, o.Listener, o.ServingCert); err != nil {
		return err
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
