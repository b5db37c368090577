// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// snapshotProbePeriod is how often the policies in force are compared with what
// is stored. As long as nothing is written, that is one small read of etcd.
const snapshotProbePeriod = time.Second

// A probe waits so long, and looks so often, until what has just been written is
// in force.
const (
	snapshotPatience   = time.Second
	snapshotPollPeriod = 20 * time.Millisecond
)

// Storage is where the objects are stored.
type Storage interface {
	// Current returns the revision of what is stored. Those of different epochs
	// have no order.
	Current(ctx context.Context) (epoch int, revision int64, err error)
	// List reads all objects of a kind into list, as they are at a revision or
	// later; without one, as they are now in whatever epoch that is.
	List(ctx context.Context, resource schema.GroupResource, revision int64, list runtime.Object) error
	// Reachable returns why nobody can be asked about what is stored, or nil.
	Reachable() error
	// Servers names those who store.
	Servers() string
}

// Snapshot knows how old the policies in force may be: when they were last known
// to be all that was stored. It also says in the log when etcd is gone and when
// it is back. The age grows while etcd does not answer, and while what is written
// does not come into force.
type Snapshot struct {
	storage Storage
	clock   clock.PassiveClock

	confirmed atomic.Pointer[time.Time]

	// Of the probe alone.
	last  point      // what was confirmed last
	names []versions // what was stored then, by kind
	gone  bool       // that etcd is gone has been said
}

// point is a point in the history of the storage.
type point struct {
	epoch    int
	revision int64
}

// NewSnapshot returns a snapshot of which nothing is known as long as nobody
// follows.
func NewSnapshot(storage Storage, clock clock.PassiveClock) *Snapshot {
	return &Snapshot{storage: storage, clock: clock}
}

// Age returns how long ago, at now, the policies in force were known to be those
// that are stored. It is false as long as that has never been known.
func (s *Snapshot) Age(now time.Time) (time.Duration, bool) {
	confirmed := s.confirmed.Load()
	if confirmed == nil {
		return 0, false
	}
	return max(now.Sub(*confirmed), 0), true
}

// heldKind is a stored kind and what the server holds of it.
type heldKind struct {
	resource schema.GroupResource
	newList  func() runtime.Object
	mirror   *mirror
	// inForce returns the version of an object that is in force.
	inForce func(name cache.ObjectName) (resourceVersion string, ok bool)
}

// versions are resource versions by object.
type versions map[cache.ObjectName]string

// run probes until ctx ends.
func (s *Snapshot) run(ctx context.Context, kinds []heldKind) {
	wait.UntilWithContext(ctx, func(ctx context.Context) { s.probe(ctx, kinds) }, snapshotProbePeriod)
}

func (s *Snapshot) probe(ctx context.Context, kinds []heldKind) {
	began := s.clock.Now()
	epoch, revision, err := s.storage.Current(ctx)
	s.report(ctx, err)
	if err != nil {
		return
	}
	if now := (point{epoch, revision}); now != s.last {
		names := make([]versions, len(kinds))
		for i, kind := range kinds {
			var before versions
			if s.names != nil {
				before = s.names[i]
			}
			if names[i], err = s.inForce(ctx, kind, now, before); err != nil {
				klog.FromContext(ctx).V(2).Info("What is stored is not known to be in force", "resource", kind.resource, "reason", err)
				return
			}
		}
		s.last, s.names = now, names
	}
	s.confirmed.Store(&began)
}

// report says once that etcd is gone, and once that it is back.
func (s *Snapshot) report(ctx context.Context, err error) {
	logger := klog.FromContext(ctx)
	switch {
	case err != nil && !s.gone && ctx.Err() == nil:
		logger.Error(err, "etcd cannot be reached: policies that have been read stay in force, nothing can be written", "servers", s.storage.Servers())
	case err == nil && s.gone:
		logger.Info("etcd answers again", "servers", s.storage.Servers())
	}
	s.gone = err != nil
}

// inForce returns what is held of a kind once all that was stored at a point in
// the history is in force, and what was there before and is not any more, is not.
// It waits a little for that: changes may come all the time.
func (s *Snapshot) inForce(ctx context.Context, kind heldKind, now point, before versions) (versions, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotPatience)
	defer cancel()
	held, err := s.heard(ctx, kind, now)
	if err != nil {
		return nil, err
	}
	exact := now.epoch != s.last.epoch // versions of different epochs have no order
	var missing cache.ObjectName
	err = wait.PollUntilContextCancel(ctx, snapshotPollPeriod, true, func(context.Context) (bool, error) {
		for name, version := range held {
			if got, ok := kind.inForce(name); !isAtLeast(got, version, exact) && (ok || kind.mirror.holds(name)) {
				missing = name
				return false, nil
			}
		}
		for name := range before {
			if _, ok := kind.inForce(name); ok && !kind.mirror.holds(name) {
				missing = name
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("the last change of %s: %w", missing, err)
	}
	return held, nil
}

// heard returns what is held of a kind once that includes all changes up to a
// point in the history.
func (s *Snapshot) heard(ctx context.Context, kind heldKind, now point) (held versions, err error) {
	var stored versions
	err = wait.PollUntilContextCancel(ctx, snapshotPollPeriod, true, func(ctx context.Context) (bool, error) {
		var revision int64
		if held, revision, err = kind.mirror.held(); err != nil {
			return false, err
		}
		if now.epoch == s.last.epoch && s.last.revision > 0 && revision >= now.revision {
			return true, nil
		}
		if stored == nil {
			if stored, err = s.stored(ctx, kind, now); err != nil {
				return false, err
			}
		}
		return maps.Equal(held, stored), nil
	})
	if err != nil {
		return nil, fmt.Errorf("not all changes are heard of: %w", err)
	}
	return held, nil
}

// isAtLeast compares resource versions. Nothing is at least anything.
func isAtLeast(got, want string, exact bool) bool {
	if got == want || exact {
		return got == want
	}
	order, err := resourceversion.CompareResourceVersion(got, want)
	return err == nil && order > 0
}

// stored lists a kind as it is stored.
func (s *Snapshot) stored(ctx context.Context, kind heldKind, now point) (versions, error) {
	var revision int64
	if now.epoch == s.last.epoch {
		revision = now.revision
	}
	list := kind.newList()
	if err := s.storage.List(ctx, kind.resource, revision, list); err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	return versionsOf(items)
}

func versionsOf(objects []runtime.Object) (versions, error) {
	found := make(versions, len(objects))
	for _, object := range objects {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		found[cache.MetaObjectToName(accessor)] = accessor.GetResourceVersion()
	}
	return found, nil
}
