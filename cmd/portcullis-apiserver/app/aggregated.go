// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/aggregated"
	"github.com/portcullis-dev/portcullis/pkg/apiserver"
)

// runAggregated serves behind a kube-apiserver until ctx ends.
func runAggregated(ctx context.Context, o *Options, out io.Writer) (err error) {
	addFiles, err := o.load(ctx)
	if err != nil {
		return err
	}
	env, err := aggregated.Start(ctx, o.environment())
	if err != nil {
		if ctx.Err() != nil {
			return nil // asked to stop before the server was up
		}
		return err
	}
	defer func() { err = errors.Join(err, env.Close()) }()

	config, err := apiserver.NewAggregatedConfig(apiserver.AggregatedOptions{
		Listener:      env.Listener,
		ServingCert:   env.ServingCert,
		Kubeconfig:    o.Cluster.Kubeconfig,
		Client:        env.Client,
		Namespace:     env.Namespace,
		Identity:      env.Identity,
		Etcd:          o.etcd(env),
		EtcdPrefix:    o.Etcd.Prefix,
		ShutdownDelay: o.Cluster.ShutdownDelay,
	})
	if err != nil {
		return fmt.Errorf("configure the API server: %w", err)
	}
	objects, err := apiserver.FollowCluster(env.Client)
	if err != nil {
		return err
	}
	addFiles(config)
	server, err := o.build(config, objects)
	if err != nil {
		return err
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		env.Run(keeping)
	}()
	defer func() {
		stop()
		<-kept
	}()
	go func() {
		if waitUntilReady(ctx, server.Generic.LoopbackClientConfig, env.URL) {
			klog.FromContext(ctx).Info("Ready", "url", env.URL, "identity", env.Identity)
			fmt.Fprintf(out, "portcullis-apiserver %s is ready at %s\n", env.Identity, env.URL)
		}
	}()
	return server.Run(ctx)
}

// etcd is how the servers of --etcd-servers are reached: with the files of the flags,
// or those that were made.
func (o *Options) etcd(env *aggregated.Environment) storagebackend.TransportConfig {
	transport := o.Etcd.Transport()
	if o.Cluster.EtcdSecret != "" {
		transport.TrustedCAFile, transport.CertFile, transport.KeyFile = env.EtcdCAFile, env.EtcdCertFile, env.EtcdKeyFile
	}
	return transport
}
