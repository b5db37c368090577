// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/follow"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/metrics"
	"github.com/portcullis-dev/portcullis/pkg/controller/typecheck"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionreview"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// previewResource is the resource of the preview door.
const previewResource = "admissionpreviews"

// policiesResource is the resource of the policies whose types are checked.
const policiesResource = "validatingadmissionpolicies"

// metricsPath is where the generic server has metrics, too.
const metricsPath = "/metrics"

// LoadObjects returns the cluster that is made of the manifests below dir; with
// an empty dir it has no objects. The error lists all faults, one a line.
func LoadObjects(dir string) (*offline.Directory, error) {
	objects, err := offline.Open(dir, clock.RealClock{})
	if err != nil {
		return nil, fmt.Errorf("--objects: %w", err)
	}
	return objects, nil
}

// AddEngine adds what judges requests: the catalog of compiled policies, kept
// in step with the stored ones, and the doors to the chain. Policies read the
// cluster as objects shows it at each request. Storage and authorization must be
// set before: metrics tell of writes, and previews ask what their callers may do.
func (c *Config) AddEngine(objects Cluster) error {
	manifests, err := stored.NewManifests(c.scheme)
	if err != nil {
		return err
	}
	dialects := dialect.All()
	policies := catalog.New(dialects)
	glass, err := c.addBreakGlass()
	if err != nil {
		return err
	}
	observed, err := c.addMetrics(dialects, policies, objects, glass)
	if err != nil {
		return err
	}
	follower, warm := follow.NewPolicies(policies, c.scheme, c.Snapshot), warmUp(objects)
	// A cluster of which little is known yet would make policies match too little.
	current := func() *policy.Set {
		if warm() != nil {
			return nil
		}
		return policies.Current()
	}
	registered, err := plugin.NewRegistered(dialects, chain.New(current, clock.RealClock{}), observed)
	if err != nil {
		return err
	}
	convergence := plugin.NewConvergence(registered, policies.Diverges)
	c.Extra.Hooks = with(c.Extra.Hooks, convergenceHook, func(hook genericapiserver.PostStartHookContext) error {
		go convergence.Run(hook)
		return nil
	})
	judge := frankJudge{Registered: registered, ready: both(warm, follower.Ready)}
	candidates := &admissionpreview.Candidates{Read: manifests.DecodeNew, Compiler: policies}
	c.Extra.Virtual = with(c.Extra.Virtual, previewResource, rest.Storage(admissionpreview.NewREST(judge, objects.View, candidates, c.access(current))))
	c.Extra.Forecast = admissionpreview.NewForecast(judge, objects.View, policies, c.access(current))
	c.Extra.Compile = policies.Compile
	c.Extra.Mapper = func() meta.RESTMapper { return objects.View().Mapper() }
	c.addReviewDoors(judge, mutatingJudge{judge}, func(door string, judge admissionreview.Judge) admissionreview.Judge {
		return observed.TimeReviews(glass.unless(judge, door, observed.Unjudged))
	}, objects.View)
	c.hurryQuestions()
	c.Extra.Hooks = with(c.Extra.Hooks, policiesHook, followPolicies(follower))
	if err := c.addConditions(policies, c.addTypeChecks(policies, objects)); err != nil {
		return err
	}
	c.addCluster(objects, policies, warm)
	c.addBootstrap(policies)
	c.Extra.Hooks = with(c.Extra.Hooks, restHook, restPolicies(policies.Rest))
	c.Extra.Ready = append(c.Extra.Ready, healthz.NamedCheck("portcullis-policies", func(*http.Request) error { return follower.Ready() }))
	return nil
}

// addMetrics adds the metrics of the engine to those that the server serves. They
// hear of what becomes of the stored policies; what judges must be told of them.
// The storage must be set before.
func (c *Config) addMetrics(dialects []policy.Dialect, policies *catalog.Catalog, objects Cluster, glass emergency) (*metrics.Registry, error) {
	if c.Generic.RESTOptionsGetter == nil {
		return nil, errors.New("the storage is not set")
	}
	kinds := map[schema.GroupResource]string{}
	for _, kind := range stored.Kinds() {
		name, err := kind.Name(c.scheme)
		if err != nil {
			return nil, err
		}
		kinds[policyapi.Resource(kind.Resource)] = name
	}
	sources := metrics.Sources{
		Version:  buildVersion(),
		Dialects: dialects,
		Report:   reportOf(policies),
		Complete: func() bool { return policies.Current() != nil },
		Clock:    clock.RealClock{},
	}
	if manifests, ok := objects.(written); ok {
		sources.Objects = manifests.Status
	}
	if followed, ok := objects.(remote); ok {
		sources.HeardAt = followed.HeardAt
	}
	if c.bootstrap != nil {
		sources.Bootstrap = c.bootstrap.Status
	}
	if glass.glass != nil {
		sources.Unjudged = glass.open
	}
	if c.Snapshot != nil {
		sources.Age = c.Snapshot.Age
	}
	observed := metrics.New(sources)
	c.Generic.RESTOptionsGetter = observed.WatchWrites(c.Generic.RESTOptionsGetter, kinds)
	policies.Watch(observed.Changed)
	c.Extra.Handlers = with(c.Extra.Handlers, metricsPath, observed.Handler())
	return observed, nil
}

// addTypeChecks tells writers of policies what does not fit the types of the
// cluster, and returns what tells it in the status of the policies, also when a
// CustomResourceDefinition has changed.
func (c *Config) addTypeChecks(policies *catalog.Catalog, objects Cluster) *typecheck.Controller {
	types := newTypes(objects.View)
	c.Extra.Warnings = with(c.Extra.Warnings, policiesResource, stored.Warnings(types.warnings))
	controller := typecheck.New(policies, types.check)
	objects.WatchDefinitions(func([]string) { controller.TypesChanged() })
	return controller
}

// access is what previews ask about their callers.
func (c *Config) access(stored func() *policy.Set) admissionpreview.Access {
	return admissionpreview.Access{
		Authorizer: c.Generic.Authorization.Authorizer,
		Stored:     stored,
	}
}

// with adds an entry to a map that may be nil.
func with[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}
