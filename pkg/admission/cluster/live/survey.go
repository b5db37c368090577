// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/mirror"
)

const (
	// surveyPeriod is how often the API server is asked which kinds there are when
	// nothing happens.
	surveyPeriod = 30 * time.Second
	// surveyGap is the least time between two rounds, and askedPeriod that from the
	// beginning of a round to one that begins only because somebody asks for an unknown
	// kind, whatever kinds are asked for.
	surveyGap   = 250 * time.Millisecond
	askedPeriod = time.Second
	// surveyTimeout bounds a round.
	surveyTimeout = 10 * time.Second
	// maxSurveyPause is how long a survey rests after a round that failed, at most.
	maxSurveyPause = 10 * time.Second
)

// followUps is when the API server is asked again after a definition has changed: it
// tells of the change first, and a little later of the resources and schemas.
func followUps() []time.Duration {
	return []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}
}

// survey reads which kinds the cluster serves, again and again.
type survey struct {
	client      discovery.DiscoveryInterfaceWithContext
	clock       clock.Clock
	definitions *mirror.Mirror[*defined]
	watchers    []func(groups []string)
	moved       func() // called when there is a new snapshot
	latest      atomic.Pointer[snapshot]
	changed     chan struct{} // holds a sign that definitions have changed
	asked       chan struct{} // holds a wish for a round

	mu         sync.Mutex
	running    bool
	due        bool       // definitions have changed since the last round began
	next       *round     // that has not begun
	missed     *lru.Cache // of time.Time: when a kind that is unknown was asked for
	epoch      uint64     // how often missed has been cleared
	readAt     time.Time
	err        error // of the last round
	schemasErr error // of the last round that had no err
	partial    []schema.GroupVersion
}

// round is one reading.
type round struct{ done chan struct{} }

func newRound() *round { return &round{done: make(chan struct{})} }

func newSurvey(client discovery.DiscoveryInterfaceWithContext, clock clock.Clock) *survey {
	s := &survey{
		client:  client,
		clock:   clock,
		changed: make(chan struct{}, 1),
		asked:   make(chan struct{}, 1),
		next:    newRound(),
		missed:  lru.New(maxMissed),
	}
	s.latest.Store(&snapshot{})
	return s
}

// definitionsChanged makes the survey look at once, and again a few times.
func (s *survey) definitionsChanged() {
	s.mu.Lock()
	s.due = true
	s.forgetLocked()
	s.mu.Unlock()
	wake(s.changed)
}

func wake(sleeper chan struct{}) {
	select {
	case sleeper <- struct{}{}:
	default:
	}
}

// run makes rounds until ctx ends.
func (s *survey) run(ctx context.Context) {
	s.setRunning(true)
	defer s.setRunning(false)
	select {
	case <-ctx.Done():
		return
	case <-s.definitions.Answered():
	}
	var pause, failed time.Duration
	var due []time.Duration
	var began time.Time
	for {
		if s.sleep(ctx, pause, began) {
			due = followUps()
		}
		if ctx.Err() != nil {
			return
		}
		began = s.clock.Now()
		switch err := s.round(ctx); {
		case err != nil:
			failed = min(max(2*failed, time.Second), maxSurveyPause)
			pause = failed
		case len(due) > 0:
			failed, pause, due = 0, due[0], due[1:]
		default:
			failed, pause = 0, surveyPeriod
		}
	}
}

func (s *survey) setRunning(running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = running
}

// sleep waits for the next round, and says whether it is due to a change. The last
// one has begun at a time, and has just ended.
func (s *survey) sleep(ctx context.Context, pause time.Duration, began time.Time) (changed bool) {
	ended := s.clock.Now()
	next := s.clock.NewTimer(pause)
	defer next.Stop()
	select {
	case <-ctx.Done():
	case <-next.C():
		return false
	case <-s.changed:
		changed = true
	case <-s.asked:
		allowed := s.clock.NewTimer(askedPeriod - s.clock.Since(began))
		defer allowed.Stop()
		select {
		case <-ctx.Done():
		case <-next.C():
			return false
		case <-allowed.C():
		case <-s.changed:
			changed = true
		}
	}
	if left := surveyGap - s.clock.Since(ended); left > 0 && pause > 0 {
		gap := s.clock.NewTimer(left)
		defer gap.Stop()
		select {
		case <-ctx.Done():
		case <-gap.C():
		}
	}
	return changed
}

// round reads everything once.
func (s *survey) round(ctx context.Context) error {
	s.mu.Lock()
	this := s.next
	s.next, s.due = newRound(), false
	select {
	case <-s.asked: // this round is what they have asked for
	default:
	}
	s.mu.Unlock()
	defer close(this.done)

	now, schemasErr, err := s.read(ctx)
	previous := s.latest.Load()
	made := previous
	if err == nil {
		made = newSnapshot(now, s.definitions.List("", everything()), previous)
	}
	isNew := !made.equal(previous)
	if isNew {
		s.latest.Store(made)
	}
	s.note(ctx, now, schemasErr, err, isNew)
	if !isNew {
		return err
	}
	s.moved()
	groups := made.changedGroups(previous)
	for _, notify := range s.watchers {
		notify(append([]string(nil), groups...))
	}
	return nil
}

// note records how a round has ended.
func (s *survey) note(ctx context.Context, now discovered, schemasErr, err error, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil && (s.err == nil || s.err.Error() != err.Error()) {
			klog.FromContext(ctx).Error(err, "It cannot be read which kinds the cluster serves; what was read last is still in use")
		}
		s.err = err
		return
	}
	s.err, s.schemasErr, s.readAt, s.partial = nil, schemasErr, s.clock.Now(), nil
	for gv := range now.failed {
		s.partial = append(s.partial, gv)
	}
	slices.SortFunc(s.partial, func(a, b schema.GroupVersion) int { return cmp.Compare(a.String(), b.String()) })
	if isNew {
		s.forgetLocked()
	}
}

// read asks the API server. That schemas cannot be read is no reason not to know the
// kinds.
func (s *survey) read(ctx context.Context) (now discovered, schemasErr, err error) {
	if err := s.definitions.Usable(); err != nil {
		return now, nil, fmt.Errorf("CustomResourceDefinitions: %w", advise(err, definitionResource))
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	now.groups, now.lists, err = discovery.ServerGroupsAndResourcesWithContext(ctx, s.client)
	if failed, isPartial := discovery.GroupDiscoveryFailedErrorGroups(err); isPartial {
		now.failed, err = failed, nil
	}
	switch {
	case err != nil:
		return now, nil, fmt.Errorf("discovery: %w", err)
	case len(now.lists) == 0:
		return now, nil, errors.New("discovery: the API server of the cluster names no resource at all")
	}
	documents, schemasErr := s.client.OpenAPIV3WithContext(ctx).PathsWithContext(ctx)
	if schemasErr != nil {
		return now, schemasErr, nil
	}
	now.documents = make(map[schema.GroupVersion]openapi.GroupVersionWithContext, len(documents))
	for path, document := range documents {
		if gv, ok := groupVersionOf(path); ok {
			now.documents[gv] = document
		}
	}
	return now, nil, nil
}

// unread returns why nothing has been read yet, or nil.
func (s *survey) unread() error {
	if s.latest.Load().read {
		return nil
	}
	if err := s.failing(); err != nil {
		return fmt.Errorf("the resources of the cluster have not been read yet: %w", err)
	}
	return errors.New("the resources of the cluster have not been read yet")
}

// failing returns why the last round failed, or nil.
func (s *survey) failing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *survey) status() DiscoveryStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return DiscoveryStatus{ReadAt: s.readAt, Err: s.err, SchemasErr: s.schemasErr, Unread: append([]schema.GroupVersion(nil), s.partial...)}
}
