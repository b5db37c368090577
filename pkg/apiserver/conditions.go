// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/controller/policystatus"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
)

// ConditionsHook writes the conditions of stored policies. A server without it
// judges all the same.
const ConditionsHook = "portcullis-policy-conditions"

// writeConditions returns the hook. It returns at once and writes until the server
// stops.
func writeConditions(policies *catalog.Catalog) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		client, err := versioned.NewForConfig(hook.LoopbackClientConfig)
		if err != nil {
			return fmt.Errorf("client of the own API: %w", err)
		}
		go policystatus.New(client.PolicyV1alpha1().ValidatingAdmissionPolicies(), policies).Run(hook)
		return nil
	}
}
