// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/bootstrap"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// LoadBootstrap returns the policies of the manifests in dir, or none with an empty
// dir. The error lists all faults, one a line.
func LoadBootstrap(ctx context.Context, dir string) (*bootstrap.Directory, error) {
	if dir == "" {
		return nil, nil //nolint:nilnil // nothing is to be read, and nothing was read
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	manifests, err := stored.NewManifests(scheme)
	if err != nil {
		return nil, err
	}
	policies, err := bootstrap.Open(ctx, dir, manifests, catalog.New(dialect.All()), clock.RealClock{})
	if err != nil {
		return nil, fmt.Errorf("--bootstrap-policies: %w", err)
	}
	return policies, nil
}

// SetBootstrap puts policies in force that are not stored; nil has none. It is
// called before AddEngine.
func (c *Config) SetBootstrap(policies *bootstrap.Directory) { c.bootstrap = policies }

// addBootstrap makes the bootstrap policies part of the first set that policies has,
// and of all after it. The manifests are followed from then on.
func (c *Config) addBootstrap(policies *catalog.Catalog) {
	if c.bootstrap == nil {
		return
	}
	policies.Fix(c.bootstrap.Units())
	c.Extra.Hooks = with(c.Extra.Hooks, bootstrapHook, followBootstrap(c.bootstrap, policies))
}

// followBootstrap keeps the bootstrap policies in force as their manifests are.
func followBootstrap(manifests *bootstrap.Directory, policies *catalog.Catalog) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		go manifests.Run(hook, policies.Fix)
		return nil
	}
}

// reportOf says what became of a policy or binding, stored or not.
func reportOf(policies *catalog.Catalog) func(policy.ID) (catalog.Report, bool) {
	return func(id policy.ID) (catalog.Report, bool) {
		if report, ok := policies.Report(id); ok {
			return report, true
		}
		return policies.Fixed(id)
	}
}
