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
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
	"github.com/portcullis-dev/portcullis/pkg/generated/informers/externalversions"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionreview"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// ReviewPath is the direct review door for validation.
const ReviewPath = "/admission/v1/validate"

// LoadObjects returns a cluster that is made of the manifests below dir; with an
// empty dir it has no objects. The error lists all faults, one a line.
func LoadObjects(dir string) (func() cluster.View, error) {
	objects, err := offline.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("--objects: %w", err)
	}
	return func() cluster.View { return objects }, nil
}

// AddEngine adds what judges requests: the catalog of compiled policies, kept
// in step with the stored ones, and the doors to the chain. Policies read the
// cluster through what view returns for each request.
func (c *Config) AddEngine(view func() cluster.View) error {
	kinds, err := candidateKinds(c.scheme)
	if err != nil {
		return err
	}
	policies := catalog.New(dialect.All())
	judge := chain.New(policies.Current)
	follower := &follower{catalog: policies, scheme: c.scheme}
	candidates := &admissionpreview.Candidates{
		Version:  v1alpha1.SchemeGroupVersion,
		Decoder:  serializer.NewCodecFactory(c.scheme, serializer.EnableStrict).UniversalDecoder(policyapi.SchemeGroupVersion()),
		Kinds:    kinds,
		Compiler: policies,
	}
	c.Extra.Virtual = with(c.Extra.Virtual, "admissionpreviews", rest.Storage(admissionpreview.NewREST(judge, view, candidates)))
	c.Extra.Handlers = with(c.Extra.Handlers, ReviewPath, http.Handler(admissionreview.NewHandler(judge, view)))
	c.Extra.Hooks = with(c.Extra.Hooks, "portcullis-follow-policies", follower.start)
	c.Extra.Ready = append(c.Extra.Ready, healthz.NamedCheck("portcullis-policies", follower.ready))
	return nil
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
}

// start is a hook: it returns at once and follows until the server stops.
func (f *follower) start(hook genericapiserver.PostStartHookContext) error {
	client, err := versioned.NewForConfig(hook.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("client of the own API: %w", err)
	}
	informers := externalversions.NewSharedInformerFactory(client, 0)
	var sources []catalog.Source
	for _, kind := range stored.Kinds() {
		informer, err := informers.ForResource(v1alpha1.SchemeGroupVersion.WithResource(kind.Resource))
		if err != nil {
			return fmt.Errorf("informer of %s: %w", kind.Resource, err)
		}
		name, err := kindName(f.scheme, kind)
		if err != nil {
			return err
		}
		sources = append(sources, catalog.Source{Kind: name, Informer: informer.Informer()})
	}
	go f.follow(hook, sources)
	informers.Start(hook.Done())
	return nil
}

func (f *follower) follow(ctx context.Context, sources []catalog.Source) {
	if err := f.catalog.Run(ctx, sources, f.internal); err != nil {
		klog.FromContext(ctx).Error(err, "The stored policies cannot be followed any more")
		f.failure.Store(&err)
	}
}

func (f *follower) internal(served runtime.Object) (runtime.Object, error) {
	return f.scheme.ConvertToVersion(served, policyapi.SchemeGroupVersion())
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
