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
	"sync"

	"k8s.io/client-go/kubernetes"
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

// fieldManager is who writes what the manifests do not have.
const fieldManager = "portcullis-local-cluster"

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
	// Progress, if given, is told what Start has done, one step at a time: a verb, and
	// what it was done to.
	Progress func(verb, object string)
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

	publishing     sync.WaitGroup
	stopPublishing context.CancelFunc
}

// Start runs a cluster and returns when requests are judged in it and kubectl
// knows the kinds of Portcullis. When it fails, nothing is left running.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Replicas == 0 {
		o.Replicas = 2
	}
	c := &Cluster{options: o}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	if c.options.ControlPlane.Dir, err = filepath.Abs(c.options.ControlPlane.Dir); err != nil {
		return err
	}
	if c.ControlPlane, err = controlplane.Start(ctx, c.options.ControlPlane); err != nil {
		return err
	}
	c.Config = c.Admin()
	c.tell("Running", "etcd, kube-apiserver and kube-controller-manager at "+c.Host)
	if c.Balancer, err = balancer.Start("127.0.0.1:0"); err != nil {
		return err
	}
	if err := c.startStorage(ctx); err != nil {
		return err
	}
	if err := c.Install(ctx); err != nil {
		return fmt.Errorf("install %s: %w", c.options.Manifests, err)
	}
	c.tell("Applied", c.options.Manifests)
	if c.kubeconfig, err = c.ServiceAccountKubeconfig(ctx, Namespace, ServiceAccount); err != nil {
		return err
	}
	if err := c.followEndpoints(ctx); err != nil {
		return err
	}
	if err := c.startReplicas(ctx); err != nil {
		return err
	}
	if err := c.WaitAvailable(ctx); err != nil {
		return err
	}
	if err := c.waitDiscovered(ctx); err != nil {
		return err
	}
	c.tell("Serving", APIService)
	return nil
}

// followEndpoints publishes which replicas are ready, until Stop.
func (c *Cluster) followEndpoints(ctx context.Context) error {
	config := c.Admin()
	config.WarningHandlerWithContext = rest.NoWarnings{} // of the type of addresses
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, c.stopPublishing = context.WithCancel(context.WithoutCancel(ctx))
	c.publishing.Go(func() { c.publishEndpoints(ctx, client) })
	return nil
}

// startReplicas starts all replicas at the same time, as a Deployment does.
func (c *Cluster) startReplicas(ctx context.Context) error {
	for range c.options.Replicas {
		if _, err := c.NewReplica(); err != nil {
			return err
		}
	}
	if err := each(c.Replicas, func(replica *Replica) error { return replica.Start(ctx) }); err != nil {
		return err
	}
	for _, replica := range c.Replicas {
		c.tell("Running", replica.Identity+" at https://"+replica.Address)
	}
	return nil
}

// Stop stops everything that runs, in the opposite order.
func (c *Cluster) Stop() error {
	errs := []error{each(c.Replicas, func(replica *Replica) error { return replica.Stop() })}
	if c.stopPublishing != nil {
		c.stopPublishing()
		c.publishing.Wait()
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

// each does the same with all replicas at the same time.
func each(replicas []*Replica, do func(*Replica) error) error {
	var working sync.WaitGroup
	errs := make([]error, len(replicas))
	for i, replica := range replicas {
		working.Go(func() { errs[i] = do(replica) })
	}
	working.Wait()
	return errors.Join(errs...)
}

func (c *Cluster) tell(verb, object string) {
	if c.options.Progress != nil {
		c.options.Progress(verb, object)
	}
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
