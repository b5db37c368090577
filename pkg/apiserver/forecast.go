// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// forecastWrites has dry runs of kinds say what existing objects would come to.
func (c *completedConfig) forecastWrites(kinds []stored.Kind, policies *storedPolicies) {
	forecast := c.extra.Forecast
	if forecast == nil {
		return
	}
	for i := range kinds {
		switch kinds[i].Resource {
		case policiesResource:
			kinds[i].Forecast = stored.Warnings(forecast.Policy)
		case bindingsResource:
			kinds[i].Forecast = stored.Warnings(func(ctx context.Context, binding *policyapi.ValidatingAdmissionPolicyBinding) []string {
				return forecast.Binding(ctx, binding, policies.get)
			})
		}
	}
}
