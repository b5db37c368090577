// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	basemetrics "k8s.io/component-base/metrics"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// maxWaiting bounds the writes that are known to wait. When there are more,
// something is stuck, and they are forgotten: the age of the snapshot tells of it.
const maxWaiting = 10_000

// propagation measures how long acknowledged writes take until they are in force.
// Writes of the metadata or the status alone change no policy and are not
// measured.
type propagation struct {
	sources  Sources
	observer basemetrics.ObserverMetric

	mu      sync.Mutex
	waiting map[policy.ID][]acknowledgedWrite // of each object in their order
	count   int
}

// acknowledgedWrite is a write of which the client has been told.
type acknowledgedWrite struct {
	uid        types.UID
	generation int64
	deleted    bool
	at         time.Time
}

// inForce says whether the write, or a later one of the same object, is in force.
func (w *acknowledgedWrite) inForce(report *catalog.Report, stored bool) bool {
	if w.deleted {
		return !stored || report.UID != w.uid
	}
	return stored && report.UID == w.uid && report.Generation >= w.generation
}

func newPropagation(sources Sources, observer basemetrics.ObserverMetric) *propagation {
	return &propagation{sources: sources, observer: observer, waiting: map[policy.ID][]acknowledgedWrite{}}
}

// acknowledged notes a write of an object of kind.
func (p *propagation) acknowledged(kind string, obj runtime.Object, deleted bool) {
	accessor, err := meta.Accessor(obj)
	if err != nil || accessor.GetUID() == "" {
		return // a damaged object
	}
	id := policy.ID{Kind: kind, Namespace: accessor.GetNamespace(), Name: accessor.GetName()}
	write := acknowledgedWrite{uid: accessor.GetUID(), generation: accessor.GetGeneration(), deleted: deleted, at: p.sources.Clock.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count == maxWaiting {
		clear(p.waiting)
		p.count = 0
	}
	p.waiting[id] = append(p.waiting[id], write)
	p.count++
	p.settle(id) // it may be in force already
}

// changed tells that what is in force of an object has changed.
func (p *propagation) changed(id policy.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle(id)
}

// settle observes the writes of an object that do not wait any more: the last one
// in force and those before it, of which some may never have been in force. Those
// of an object that had the name before are left out, since it is not known when
// it went.
func (p *propagation) settle(id policy.ID) {
	writes := p.waiting[id]
	if len(writes) == 0 || !p.sources.Complete() {
		return
	}
	report, stored := p.sources.Report(id)
	for last := len(writes) - 1; last >= 0; last-- {
		if !writes[last].inForce(&report, stored) {
			continue
		}
		for i := range writes[:last+1] {
			if writes[i].uid == writes[last].uid {
				p.observer.Observe(seconds(p.sources.Clock.Since(writes[i].at)))
			}
		}
		p.count -= last + 1
		if p.waiting[id] = writes[last+1:]; len(p.waiting[id]) == 0 {
			delete(p.waiting, id)
		}
		return
	}
}

// WatchWrites returns storage and hears of all that is written to it of the given
// kinds, which are named by resource.
func (r *Registry) WatchWrites(storage generic.RESTOptionsGetter, kinds map[schema.GroupResource]string) generic.RESTOptionsGetter {
	return &watchedStorage{RESTOptionsGetter: storage, kinds: kinds, propagation: r.writes}
}

// watchedStorage tells of the writes of the kinds, by resource.
type watchedStorage struct {
	generic.RESTOptionsGetter
	kinds       map[schema.GroupResource]string
	propagation *propagation
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (s *watchedStorage) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := s.RESTOptionsGetter.GetRESTOptions(resource, example)
	kind, ok := s.kinds[resource]
	if err != nil || !ok {
		return options, err
	}
	open := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		opened, destroy, err := open(config, prefix, key, newFunc, newListFunc, attrs, triggers, indexers)
		if err != nil {
			return nil, nil, err
		}
		return &watchedKind{Interface: opened, kind: kind, propagation: s.propagation}, destroy, nil
	}
	return options, nil
}

// watchedKind tells of the writes of one kind.
type watchedKind struct {
	storage.Interface
	kind        string
	propagation *propagation
}

// Create implements storage.Interface.
func (s *watchedKind) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	err := s.Interface.Create(ctx, key, obj, out, ttl)
	if err == nil {
		s.propagation.acknowledged(s.kind, out, false)
	}
	return err
}

// Delete implements storage.Interface.
func (s *watchedKind) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)
	if err == nil {
		s.propagation.acknowledged(s.kind, out, true)
	}
	return err
}

// GuaranteedUpdate implements storage.Interface.
func (s *watchedKind) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	var before int64
	noting := func(existing runtime.Object, response storage.ResponseMeta) (runtime.Object, *uint64, error) {
		before = generationOf(existing)
		return update(existing, response)
	}
	err := s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, noting, cached)
	if err == nil && generationOf(out) != before {
		s.propagation.acknowledged(s.kind, out, false)
	}
	return err
}

func generationOf(obj runtime.Object) int64 {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return 0
	}
	return accessor.GetGeneration()
}
