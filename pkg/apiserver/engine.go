// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionreview"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// ReviewPath is the direct review door for validation.
const ReviewPath = "/admission/v1/validate"

// LoadObjects returns the cluster that is made of the manifests below dir; with
// an empty dir it has no objects. The error lists all faults, one a line.
func LoadObjects(dir string) (*offline.Directory, error) {
	objects, err := offline.Open(dir, clock.RealClock{})
	if err != nil {
		return nil, fmt.Errorf("--objects: %w", err)
	}
	return objects, nil
}

// followObjects returns a hook that keeps objects in step with its files until
// the server stops.
func followObjects(objects *offline.Directory) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		go objects.Run(hook)
		return nil
	}
}

// AddEngine adds what judges requests: the catalog of compiled policies, kept
// in step with the stored ones, and the doors to the chain. Policies read the
// cluster as objects shows it at each request. Storage and authorization must be
// set before: metrics tell of writes, and previews ask what their callers may do.
func (c *Config) AddEngine(objects *offline.Directory) error {
	kinds, err := candidateKinds(c.scheme)
	if err != nil {
		return err
	}
	dialects := dialect.All()
	policies := catalog.New(dialects)
	metrics, err := c.addMetrics(dialects, policies, objects)
	if err != nil {
		return err
	}
	judge, err := plugin.NewRegistered(dialects, chain.New(policies.Current, clock.RealClock{}), metrics)
	if err != nil {
		return err
	}
	follower := &follower{catalog: policies, scheme: c.scheme, snapshot: c.Snapshot}
	candidates := &admissionpreview.Candidates{
		Version:  v1alpha1.SchemeGroupVersion,
		Decoder:  serializer.NewCodecFactory(c.scheme, serializer.EnableStrict).UniversalDecoder(policyapi.SchemeGroupVersion()),
		Kinds:    kinds,
		Compiler: policies,
	}
	c.Extra.Virtual = with(c.Extra.Virtual, "admissionpreviews", rest.Storage(admissionpreview.NewREST(judge, objects.View, candidates, c.access(policies))))
	c.hurryReviews()
	c.Extra.Handlers = with(c.Extra.Handlers, ReviewPath, http.Handler(admissionreview.NewHandler(metrics.timed(judge), objects.View)))
	c.Extra.Hooks = with(c.Extra.Hooks, "portcullis-follow-policies", follower.start)
	c.Extra.Hooks = with(c.Extra.Hooks, ConditionsHook, writeConditions(policies))
	c.Extra.Hooks = with(c.Extra.Hooks, "portcullis-follow-objects", followObjects(objects))
	c.Extra.Ready = append(c.Extra.Ready, healthz.NamedCheck("portcullis-policies", follower.ready))
	return nil
}

// hurryReviews bounds the time that callers may take to send a review, outside
// of all other filters.
func (c *Config) hurryReviews() {
	build := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(next http.Handler, generic *genericapiserver.Config) http.Handler {
		return admissionreview.WithBodyTimeout(build(next, generic), ReviewPath)
	}
}

// access is what previews ask about their callers.
func (c *Config) access(policies *catalog.Catalog) admissionpreview.Access {
	return admissionpreview.Access{
		Authorizer: c.Generic.Authorization.Authorizer,
		StoredPolicy: func(id policy.ID) *policy.Unit {
			if set := policies.Current(); set != nil {
				return set.Policy(id)
			}
			return nil
		},
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

// candidateKinds are the stored kinds, as a preview takes them.
func candidateKinds(scheme *runtime.Scheme) (map[string]admissionpreview.CandidateKind, error) {
	kinds := map[string]admissionpreview.CandidateKind{}
	for _, kind := range stored.Kinds() {
		name, err := kindName(scheme, kind)
		if err != nil {
			return nil, err
		}
		kinds[name] = admissionpreview.CandidateKind{Home: kind.Home, Namespaced: kind.Namespaced, Validate: kind.Validate}
	}
	return kinds, nil
}

func kindName(scheme *runtime.Scheme, kind stored.Kind) (string, error) {
	gvks, _, err := scheme.ObjectKinds(kind.New())
	if err != nil {
		return "", fmt.Errorf("kind of %s: %w", kind.Resource, err)
	}
	return gvks[0].Kind, nil
}

// follower keeps the catalog in step with the stored policies.
type follower struct {
	catalog *catalog.Catalog
	scheme  *runtime.Scheme
	failure atomic.Pointer[error]
	// snapshot is told what is followed, unless it is nil.
	snapshot *Snapshot
}

// start is a hook: it returns at once and follows until the server stops.
func (f *follower) start(hook genericapiserver.PostStartHookContext) error {
	client, err := versioned.NewForConfig(patientLoopback(hook.LoopbackClientConfig))
	if err != nil {
		return fmt.Errorf("client of the own API: %w", err)
	}
	var sources []catalog.Source
	var held []heldKind
	for _, kind := range stored.Kinds() {
		name, err := kindName(f.scheme, kind)
		if err != nil {
			return err
		}
		example, err := f.scheme.New(v1alpha1.SchemeGroupVersion.WithKind(name))
		if err != nil {
			return fmt.Errorf("served form of %s: %w", kind.Resource, err)
		}
		mirror := newMirror(client.PolicyV1alpha1().RESTClient(), kind.Resource, example)
		go mirror.run(hook)
		sources = append(sources, catalog.Source{Kind: name, Informer: mirror, New: kind.New})
		held = append(held, heldKind{
			resource: policyapi.Resource(kind.Resource), newList: kind.NewList, mirror: mirror,
			inForce: func(object cache.ObjectName) (string, bool) {
				report, ok := f.catalog.Report(policy.ID{Kind: name, Namespace: object.Namespace, Name: object.Name})
				return report.ResourceVersion, ok
			},
		})
	}
	go f.follow(hook, sources)
	if f.snapshot != nil {
		go f.snapshot.run(hook, held)
	}
	return nil
}

func (f *follower) follow(ctx context.Context, sources []catalog.Source) {
	if err := f.catalog.Run(ctx, sources, f.internal); err != nil {
		klog.FromContext(ctx).Error(err, "The stored policies cannot be followed any more")
		f.failure.Store(&err)
	}
}

// internal converts a served object. Of one that cannot be decoded it returns what
// can be read of it, and the damage.
func (f *follower) internal(served runtime.Object) (runtime.Object, error) {
	internal, err := f.scheme.ConvertToVersion(served, policyapi.SchemeGroupVersion())
	if err != nil {
		return nil, err
	}
	return internal, stored.Damage(served)
}

// ready fails until the set of policies is complete, and for ever once it can
// not be kept in step.
func (f *follower) ready(*http.Request) error {
	if failure := f.failure.Load(); failure != nil {
		return *failure
	}
	if f.catalog.Current() == nil {
		return errors.New("the stored policies have not been read completely")
	}
	return nil
}
