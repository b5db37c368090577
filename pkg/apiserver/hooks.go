// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/follow"
	"github.com/portcullis-dev/portcullis/pkg/controller/policystatus"
	"github.com/portcullis-dev/portcullis/pkg/controller/typecheck"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
)

// ConditionsHook writes the conditions of stored policies, and what was found in
// their types. A server without it judges all the same.
const ConditionsHook = "portcullis-policy-conditions"

// The other hooks of the engine.
const (
	policiesHook = "portcullis-follow-policies"
	objectsHook  = "portcullis-follow-objects"
	usesHook     = "portcullis-follow-params"
	restHook     = "portcullis-rest-policies"

	convergenceHook = "portcullis-convergence"

	bootstrapHook = "portcullis-follow-bootstrap-policies"
)

// restPeriod is how long at least, and half of how long at most, a policy that no
// request asks is kept ready.
const restPeriod = 5 * time.Minute

// Every hook returns at once and goes on until the server stops.

// followPolicies keeps the catalog in step with the stored policies.
func followPolicies(policies *follow.Policies) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		return policies.Start(hook, hook.LoopbackClientConfig)
	}
}

// restPolicies calls rest again and again; see catalog.Catalog.Rest.
func restPolicies(rest func()) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		go wait.UntilWithContext(hook, func(context.Context) { rest() }, restPeriod)
		return nil
	}
}

// writeConditions has the conditions of policies written.
func writeConditions(policies *catalog.Catalog, types *typecheck.Controller) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		write, err := newConditions(hook.LoopbackClientConfig, policies, types, nil)
		if err != nil {
			return err
		}
		go write(hook)
		return nil
	}
}

// newConditions returns what writes the conditions of policies through the server's
// own API until its context ends. It may be called again then, and not before. A nil
// gate is that of a server that is alone.
func newConditions(loopback *rest.Config, policies *catalog.Catalog, types *typecheck.Controller, gate policystatus.Gate) (func(context.Context), error) {
	client, err := versioned.NewForConfig(loopback)
	if err != nil {
		return nil, fmt.Errorf("client of the own API: %w", err)
	}
	stored := client.PolicyV1alpha1()
	kinds := policystatus.KindsOf(stored)
	return func(ctx context.Context) {
		var running wait.Group
		defer running.Wait()
		running.StartWithContext(ctx, policystatus.New(kinds, policies, gate).Run)
		running.StartWithContext(ctx, func(ctx context.Context) { types.Run(ctx, stored.ValidatingAdmissionPolicies()) })
	}, nil
}
