// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster installs Portcullis into a control plane on this machine, as its
// users do: with the manifests of artifacts/deploy, the rights that these give, and
// replicas behind a Service.
//
// It needs the binaries of make controlplane and make build. The replicas are
// processes, since there are no nodes, and store in an etcd that is theirs alone.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/test/controlplane"
	"github.com/portcullis-dev/portcullis/test/controlplane/balancer"
	"github.com/portcullis-dev/portcullis/test/controlplane/component"
)

// The names of the manifests.
const (
	Namespace      = "portcullis-system"
	ServiceAccount = "portcullis"
	Service        = "portcullis"
	APIService     = "v1alpha1.policy.portcullis.dev"
	Registration   = "portcullis"
)

// Options say what to install.
type Options struct {
	// ControlPlane is that of the cluster.
	ControlPlane controlplane.Options
	// Server is the binary portcullis-apiserver.
	Server string
	// Manifests is the kustomization to install: artifacts/deploy.
	Manifests string
	// Replicas is how many servers run. 0 means 2.
	Replicas int
	// ServerArgs are further flags of the servers.
	ServerArgs []string
}

// Cluster is a control plane with Portcullis in it.
type Cluster struct {
	*controlplane.ControlPlane
	// Storage is the etcd of Portcullis.
	Storage *component.Component
	// Balancer stands for the Service: it sends connections to replicas that are ready.
	Balancer *balancer.Balancer
	// Replicas are the servers.
	Replicas []*Replica
	// Config is that of a client who may do everything.
	Config *rest.Config

	options    Options
	kubeconfig string // of the service account
	etcd       string // URL
}

// Start runs a cluster and returns when requests are judged in it.
func Start(ctx context.Context, o Options) (c *Cluster, err error) {
	if o.Replicas == 0 {
		o.Replicas = 2
	}
	c = &Cluster{options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
			c = nil
		}
	}()
	if c.ControlPlane, err = controlplane.Start(ctx, o.ControlPlane); err != nil {
		return c, err
	}
	c.Config = c.Admin()
	if c.Balancer, err = balancer.Start("127.0.0.1:0"); err != nil {
		return c, err
	}
	if err = c.startStorage(ctx); err != nil {
		return c, err
	}
	if err = c.Install(ctx); err != nil {
		return c, fmt.Errorf("install %s: %w", o.Manifests, err)
	}
	if c.kubeconfig, err = c.ServiceAccountKubeconfig(ctx, Namespace, ServiceAccount); err != nil {
		return c, err
	}
	for range o.Replicas {
		replica, err := c.NewReplica()
		if err != nil {
			return c, err
		}
		if err := replica.Start(ctx); err != nil {
			return c, err
		}
	}
	return c, c.WaitAvailable(ctx)
}

// Stop stops everything that runs.
func (c *Cluster) Stop() error {
	var errs []error
	for _, replica := range c.Replicas {
		errs = append(errs, replica.Stop())
	}
	if c.Balancer != nil {
		c.Balancer.Close()
	}
	if c.Storage != nil {
		errs = append(errs, c.Storage.Stop())
	}
	if c.ControlPlane != nil {
		errs = append(errs, c.ControlPlane.Stop())
	}
	return errors.Join(errs...)
}

// Components are the programs of the cluster, for their logs.
func (c *Cluster) Components() []*component.Component {
	all := c.ControlPlane.Components()
	if c.Storage != nil {
		all = append(all, c.Storage)
	}
	for _, replica := range c.Replicas {
		all = append(all, replica.Component)
	}
	return all
}

// dir is where files of Portcullis are, beside those of the control plane.
func (c *Cluster) dir(name string) string {
	return filepath.Join(c.options.ControlPlane.Dir, "portcullis", name)
}
