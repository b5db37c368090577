// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"sync"
	"time"
)

const (
	// awaitTimeout bounds how long a view waits for kinds that it does not know,
	// however many these are.
	awaitTimeout = 2 * time.Second
	// missedFor is for how long an unknown kind is not asked for again, unless
	// definitions change, and maxMissed of how many that is remembered.
	missedFor = 10 * time.Second
	maxMissed = 1024
	// maxNameLength bounds the group and name of a kind or resource that is asked for:
	// no API server serves longer ones.
	maxNameLength = 320
)

// patient has the API server asked, once, whether there are kinds that are not known.
// Each view has its own: a request waits for one round, no matter how many such kinds
// it names.
type patient struct {
	survey *survey
	once   sync.Once
	asked  asked
}

// asked is when the API server was asked.
type asked struct {
	at    time.Time
	epoch uint64
}

// again returns what is known after the API server has been asked whether there is a
// kind or resource by now. It waits only if that has not been asked lately, and the
// first time: what is unknown later is not in what was read then, or has come since.
func (p *patient) again(missing string) *snapshot {
	s := p.survey
	if !s.worthAsking(missing) {
		return s.latest.Load()
	}
	waits := false
	p.once.Do(func() {
		waits = true
		p.asked = s.await(missing)
	})
	if !waits {
		s.miss(missing, p.asked)
	}
	return s.latest.Load()
}

// worthAsking says whether something may come of asking for what is missing.
func (s *survey) worthAsking(missing string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running || len(missing) > maxNameLength {
		return false
	}
	found, _ := s.missed.Get(missing)
	at, known := found.(time.Time)
	return !known || s.clock.Since(at) >= missedFor
}

// await waits for a round that has not begun yet: the one that is under way may have
// read already what it reads of the missing kind.
func (s *survey) await(missing string) asked {
	s.mu.Lock()
	now := asked{s.clock.Now(), s.epoch}
	s.missed.Add(missing, now.at)
	awaited := s.next
	if !s.due {
		wake(s.asked)
	}
	s.mu.Unlock()
	timer := s.clock.NewTimer(awaitTimeout)
	defer timer.Stop()
	select {
	case <-awaited.done:
	case <-timer.C():
	}
	return now
}

// miss notes that a kind was missing when the API server was asked for another, unless
// definitions have changed since.
func (s *survey) miss(missing string, when asked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if when.epoch == s.epoch {
		s.missed.Add(missing, when.at)
	}
}

// forgetLocked has unknown kinds asked for again.
func (s *survey) forgetLocked() {
	s.missed.Clear()
	s.epoch++
}
