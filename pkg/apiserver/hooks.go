// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
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
	restHook     = "portcullis-rest-policies"
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

// followObjects keeps objects in step with its files.
func followObjects(objects *offline.Directory) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		go objects.Run(hook)
		return nil
	}
}

// restPolicies calls rest again and again; see catalog.Catalog.Rest.
func restPolicies(rest func()) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		go wait.UntilWithContext(hook, func(context.Context) { rest() }, restPeriod)
		return nil
	}
}

// writeConditions writes what became of the policies, and what was found in their
// types, into their status.
func writeConditions(policies *catalog.Catalog, types *typecheck.Controller) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		client, err := versioned.NewForConfig(hook.LoopbackClientConfig)
		if err != nil {
			return fmt.Errorf("client of the own API: %w", err)
		}
		go policystatus.New(client.PolicyV1alpha1().ValidatingAdmissionPolicies(), policies).Run(hook)
		go types.Run(hook, client.PolicyV1alpha1().ValidatingAdmissionPolicies())
		return nil
	}
}
