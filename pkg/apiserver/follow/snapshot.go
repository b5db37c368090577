// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// snapshotProbePeriod is how often the storage is asked whether it has changed.
	// As long as nothing is written, that is one small read of etcd.
	snapshotProbePeriod = time.Second
	// A difference that has been there for stuckAfter is not being brought in step.
	// Then everything is read again; and when that does not help, after longer and
	// longer times. Reading many objects takes longer.
	stuckAfter     = 2 * time.Second
	stuckPerObject = time.Millisecond
	stuckRest      = 5 * time.Second
	stuckMaxRest   = time.Minute
)

// Storage is where the objects are stored.
type Storage interface {
	// Current returns the revision of what is stored, and how often there was reason
	// to doubt that it is what was asked before. As long as neither changes, what
	// is stored has not changed.
	Current(ctx context.Context) (doubts, revision int64, err error)
	// Versions returns the resource version of each object of a kind, as they are
	// stored now, at a revision. The keys are the names, behind the namespace and a slash if the
	// kind has one.
	Versions(ctx context.Context, resource schema.GroupResource) (versions map[string]int64, revision int64, err error)
	// ReadAgain makes those who serve what is stored read everything again.
	ReadAgain()
	// Reachable returns why nobody can be asked about what is stored, or nil.
	Reachable() error
	// Servers names those who store.
	Servers() string
}

// Snapshot knows how old the policies in force may be: when they were last found
// to be all that was stored. It also says in the log when etcd is gone and when
// it is back. The age grows while etcd does not answer, and while what is written
// does not come into force.
//
// After each change, and after each reason for doubt, it compares object by object
// and infers nothing from the order of revisions: an etcd that was restored from
// a copy has another order. Where something stays different, it makes everybody
// read everything again.
type Snapshot struct {
	storage Storage
	clock   clock.PassiveClock

	confirmed atomic.Pointer[time.Time]

	// Of the probe alone.
	last     point         // what was confirmed last
	gone     bool          // that etcd is gone has been said
	read     time.Time     // when everything was read again last
	rest     time.Duration // how long it is left alone then; 0 while nothing is wrong
	settling time.Duration // how long a comparison waits for what is on its way
}

// point is a point in the history of the storage.
type point struct{ doubts, revision int64 }

// NewSnapshot returns a snapshot of which nothing is known as long as nobody
// follows.
func NewSnapshot(storage Storage, clock clock.PassiveClock) *Snapshot {
	return &Snapshot{storage: storage, clock: clock, settling: settleTime}
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

// Reachable returns why nobody can be asked about what is stored, or nil.
func (s *Snapshot) Reachable() error { return s.storage.Reachable() }

// run probes until ctx ends.
func (s *Snapshot) run(ctx context.Context, kinds []*heldKind) {
	wait.UntilWithContext(ctx, func(ctx context.Context) { s.probe(ctx, kinds) }, snapshotProbePeriod)
}

func (s *Snapshot) probe(ctx context.Context, kinds []*heldKind) {
	began := s.clock.Now()
	doubts, revision, err := s.storage.Current(ctx)
	s.report(ctx, err)
	if err != nil {
		forgetDifferences(kinds)
		return
	}
	// Of what is written or doubted from here on, the next probe hears.
	if now := (point{doubts, revision}); now != s.last {
		for _, kind := range kinds {
			if err := s.compare(ctx, kind); err != nil {
				klog.FromContext(ctx).V(2).Info("What is stored is not known to be in force", "resource", kind.resource, "reason", err)
				s.mend(ctx, kind, kinds)
				return
			}
		}
		s.last, s.rest = now, 0
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

// mend makes everything be read again when something of a kind, which has just
// been compared, is stuck.
func (s *Snapshot) mend(ctx context.Context, compared *heldKind, kinds []*heldKind) {
	now := s.clock.Now()
	differing := compared.differing
	name, found := compared.stuck(now)
	forgetDifferences(kinds)
	if !found || now.Sub(s.read) < s.rest {
		compared.differing = differing
		return
	}
	logger := klog.FromContext(ctx)
	if s.rest == 0 {
		logger.Error(nil, "What is stored and what is held of it stay different. All policies are read again", "resource", compared.resource, "object", name.String())
	} else {
		logger.V(2).Info("All policies are read again once more", "resource", compared.resource, "object", name.String())
	}
	s.read, s.rest = now, min(max(2*s.rest, stuckRest), stuckMaxRest)
	s.storage.ReadAgain()
	for _, kind := range kinds {
		kind.mirror.readAgain()
	}
}

// forgetDifferences is called when they are not compared for a while: nobody knows
// whether they last.
func forgetDifferences(kinds []*heldKind) {
	for _, kind := range kinds {
		kind.differing = nil
	}
}
