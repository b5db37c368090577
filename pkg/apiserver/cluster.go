// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/live"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// usePeriod bounds how often the kinds that policies read are gathered: each time
// goes over all policies. Until then a kind that is new is read from kube-apiserver.
const usePeriod = 100 * time.Millisecond

// Cluster is the cluster that policies read: the manifests of a directory, or the
// one behind kube-apiserver.
type Cluster interface {
	// View returns the cluster as it is. It is called for each request.
	View() cluster.View
	// Run follows the cluster until ctx ends.
	Run(ctx context.Context)
	// WatchDefinitions has notify called when the types of kinds of these groups
	// have changed. It is called before Run.
	WatchDefinitions(notify func(groups []string))
}

var (
	_ Cluster = (*offline.Directory)(nil)
	_ Cluster = (*live.Cluster)(nil)
)

// FollowCluster returns the cluster behind a kube-apiserver, read with the identity
// that client has, and without its limit of calls a second: what is read for a review
// is waited for by a request that kube-apiserver has let in, and whose end would be a
// denial if the limit made it wait too long. kube-apiserver limits the calls by its
// priorities.
func FollowCluster(client *rest.Config) (*live.Cluster, error) {
	client = rest.CopyConfig(client)
	client.QPS, client.RateLimiter = -1, nil
	objects, err := dynamic.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("client of kube-apiserver: %w", err)
	}
	typed, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("client of kube-apiserver: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("client of kube-apiserver: %w", err)
	}
	return live.New(live.Options{Dynamic: objects, Kubernetes: typed, Discovery: kinds, Clock: clock.RealClock{}}), nil
}

// selective is a Cluster that keeps at hand what policies read and nothing else.
type selective interface {
	Use(kinds []schema.GroupVersionKind)
}

// written is a Cluster of manifests.
type written interface {
	Status() offline.Status
}

// remote is a Cluster that is told of by kube-apiserver.
type remote interface {
	HeardAt() time.Time
}

// warming is a Cluster that needs a while before it can be asked.
type warming interface {
	Ready() error
}

// followCluster starts a cluster with the server.
func followCluster(objects Cluster) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		go objects.Run(hook)
		return nil
	}
}

// addCluster has the server follow a cluster, tell it what policies read, and be
// ready when warm says nothing.
func (c *Config) addCluster(objects Cluster, policies *catalog.Catalog, warm func() error) {
	c.Extra.Hooks = with(c.Extra.Hooks, objectsHook, followCluster(objects))
	if chosen, ok := objects.(selective); ok {
		c.Extra.Hooks = with(c.Extra.Hooks, usesHook, useKinds(chosen, policies, func() meta.RESTMapper { return objects.View().Mapper() }))
	}
	if _, ok := objects.(warming); ok {
		c.Extra.Ready = append(c.Extra.Ready, healthz.NamedCheck("portcullis-cluster", func(*http.Request) error { return warm() }))
	}
}

// warmUp returns what says why a cluster cannot be asked yet. Once it has said nothing
// it never does again: what is missing later concerns the policies that need it, and a
// server that judges by all others must not be taken out for it, and certainly not all
// servers at the same time.
func warmUp(objects Cluster) func() error {
	slow, ok := objects.(warming)
	if !ok {
		return func() error { return nil }
	}
	var warm atomic.Bool
	return func() error {
		if warm.Load() {
			return nil
		}
		err := slow.Ready()
		if err == nil {
			warm.Store(true)
		}
		return err
	}
}

// useKinds tells a cluster which kinds the policies in force read, each time that
// policies have changed.
func useKinds(chosen selective, policies *catalog.Catalog, mapper func() meta.RESTMapper) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		changed := make(chan struct{}, 1)
		policies.Watch(func(policy.ID) {
			select {
			case changed <- struct{}{}:
			default: // someone will look
			}
		})
		go wait.UntilWithContext(hook, func(ctx context.Context) {
			select {
			case <-changed:
				chosen.Use(kindsRead(policies.Current(), mapper()))
			case <-ctx.Done():
			}
		}, usePeriod)
		return nil
	}
}

// kindsRead returns the kinds from which the policies of a set that are in force
// through a binding take params, and those that policies read by themselves, each once.
// What is read of kinds that are not known now is asked for with each request.
func kindsRead(set *policy.Set, mapper meta.RESTMapper) []schema.GroupVersionKind {
	if set == nil {
		return nil
	}
	var kinds []schema.GroupVersionKind
	known := map[schema.GroupVersionKind]bool{}
	add := func(kind schema.GroupVersionKind) {
		if !known[kind] {
			known[kind] = true
			kinds = append(kinds, kind)
		}
	}
	for _, bound := range set.All() {
		if bound.Policy == nil {
			continue
		}
		if kind := bound.Policy.Policy.ParamKind; kind != nil && len(bound.Bindings) > 0 {
			add(*kind)
		}
		for i := range bound.Policy.Policy.Reads {
			read := &bound.Policy.Policy.Reads[i]
			if read.Verb == createVerb || read.Resource.Resource == "" {
				continue
			}
			if kind, err := mapper.KindFor(read.Resource); err == nil {
				add(kind)
			}
		}
	}
	return kinds
}

// createVerb is that of reads that are reviews, which nothing stores.
const createVerb = "create"
