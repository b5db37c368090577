// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package follow keeps the catalog of compiled policies in step with the stored
// ones, as the server's own API serves them, and knows how far it may be behind.
//
// It does not know how objects are stored, nor how policies are compiled or judge.
package follow

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// Policies keeps a catalog in step with the stored policies and bindings.
type Policies struct {
	catalog  *catalog.Catalog
	scheme   *runtime.Scheme
	snapshot *Snapshot
	failure  atomic.Pointer[error]
}

// NewPolicies returns what keeps the catalog in step. scheme converts what is
// served. snapshot is told what is followed; it may be nil.
func NewPolicies(policies *catalog.Catalog, scheme *runtime.Scheme, snapshot *Snapshot) *Policies {
	return &Policies{catalog: policies, scheme: scheme, snapshot: snapshot}
}

// Start returns at once and follows until ctx ends. loopback is how the server
// asks itself. It may be called once.
func (p *Policies) Start(ctx context.Context, loopback *rest.Config) error {
	client, err := versioned.NewForConfig(patientLoopback(loopback))
	if err != nil {
		return fmt.Errorf("client of the own API: %w", err)
	}
	var sources []catalog.Source
	var held []*heldKind
	for _, kind := range stored.Kinds() {
		name, err := kind.Name(p.scheme)
		if err != nil {
			return err
		}
		example, err := p.scheme.New(v1alpha1.SchemeGroupVersion.WithKind(name))
		if err != nil {
			return fmt.Errorf("served form of %s: %w", kind.Resource, err)
		}
		mirror := newMirror(client.PolicyV1alpha1().RESTClient(), kind.Resource, example)
		go mirror.run(ctx)
		sources = append(sources, catalog.Source{Kind: name, Informer: mirror, New: kind.New})
		held = append(held, &heldKind{
			resource: policyapi.Resource(kind.Resource), name: servedName(kind), mirror: mirror, inForce: p.inForce(name),
		})
	}
	go p.follow(ctx, sources)
	if p.snapshot != nil {
		go p.snapshot.run(ctx, held)
	}
	return nil
}

// servedName returns the name under which the object of a key of the kind is served.
func servedName(kind stored.Kind) func(key string) cache.ObjectName {
	return func(key string) cache.ObjectName {
		name, _ := kind.KeyName(key)
		return cache.ObjectName(name)
	}
}

// inForce returns which version of an object of kind is in force.
func (p *Policies) inForce(kind string) func(cache.ObjectName) (string, bool) {
	return func(object cache.ObjectName) (string, bool) {
		report, ok := p.catalog.Report(policy.ID{Kind: kind, Namespace: object.Namespace, Name: object.Name})
		return report.ResourceVersion, ok
	}
}

func (p *Policies) follow(ctx context.Context, sources []catalog.Source) {
	if err := p.catalog.Run(ctx, sources, p.internal); err != nil {
		klog.FromContext(ctx).Error(err, "The stored policies cannot be followed any more")
		p.failure.Store(&err)
	}
}

// internal converts a served object. Of one that cannot be decoded it returns what
// can be read of it, and the damage.
func (p *Policies) internal(served runtime.Object) (runtime.Object, error) {
	internal, err := p.scheme.ConvertToVersion(served, policyapi.SchemeGroupVersion())
	if err != nil {
		return nil, err
	}
	return internal, stored.Damage(served)
}

// Ready returns why the set of policies is not complete, and for ever why it
// cannot be kept in step any more.
func (p *Policies) Ready() error {
	if failure := p.failure.Load(); failure != nil {
		return *failure
	}
	if p.catalog.Current() != nil {
		return nil
	}
	if p.snapshot != nil {
		if err := p.snapshot.storage.Reachable(); err != nil {
			return fmt.Errorf("the stored policies have not been read completely: %w", err)
		}
	}
	return errors.New("the stored policies have not been read completely")
}
