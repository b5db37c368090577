// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/portcullis-dev/portcullis/cmd/portcullis-apiserver/headroom"
	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/access"
	"github.com/portcullis-dev/portcullis/pkg/standalone"
)

// Run serves until ctx ends, lets the requests in flight finish, and then stops
// what the server stands on. Once the server is ready, it says on out where it is.
func Run(ctx context.Context, o *Options, out io.Writer) error {
	defer headroom.Hold()()
	if o.Cluster.aggregated() {
		return runAggregated(ctx, o, out)
	}
	return runStandalone(ctx, o, out)
}

func runStandalone(ctx context.Context, o *Options, out io.Writer) (err error) {
	objects, err := apiserver.LoadObjects(o.Objects)
	if err != nil {
		return err
	}
	addFiles, err := o.load(ctx)
	if err != nil {
		return err
	}
	users, err := access.LoadUsers(ctx, o.ClientCAFile, o.TokenAuthFile)
	if err != nil {
		return err
	}
	env, err := standalone.Start(ctx, o.standalone())
	if err != nil {
		if ctx.Err() != nil {
			return nil // asked to stop before the server was up
		}
		return err
	}
	// After the server: its last writes need etcd.
	defer func() { err = errors.Join(err, env.Close()) }()

	config, err := apiserver.NewStandaloneConfig(apiserver.StandaloneOptions{
		Listener:    env.Listener,
		ServingCert: env.ServingCert,
		ClientCA:    env.ClientCA,
		Users:       users,
		View:        objects.View,
		Etcd:        env.Etcd,
		EtcdPrefix:  o.Etcd.Prefix,
	})
	if err != nil {
		return fmt.Errorf("configure the API server: %w", err)
	}
	addFiles(config)
	server, err := o.build(config, objects)
	if err != nil {
		return err
	}
	return serve(ctx, server, env, out)
}

// serve runs the server, and ends it when etcd fails.
func serve(ctx context.Context, server *apiserver.Server, env *standalone.Environment, out io.Writer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		if err := env.WaitForFailure(ctx); err != nil {
			stop(err)
		}
	}()
	go announce(ctx, env, out)

	err := server.Run(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// load reads the files that the flags of either form name, before anything is started,
// and returns what puts them into a configuration.
func (o *Options) load(ctx context.Context) (func(*apiserver.Config), error) {
	bootstrap, err := apiserver.LoadBootstrap(ctx, o.BootstrapPolicies)
	if err != nil {
		return nil, err
	}
	audit, err := apiserver.LoadAudit(o.Audit)
	if err != nil {
		return nil, err
	}
	return func(config *apiserver.Config) {
		config.SetAudit(audit)
		config.SetBootstrap(bootstrap)
	}, nil
}

// build makes the server of a configuration that stands on its ground.
func (o *Options) build(config *apiserver.Config, objects apiserver.Cluster) (*apiserver.Server, error) {
	if err := config.SetAnonymousReviews(o.DirectReviewAnonymous); err != nil {
		return nil, err
	}
	if err := config.AddEngine(objects); err != nil {
		return nil, err
	}
	return config.Complete().New()
}
