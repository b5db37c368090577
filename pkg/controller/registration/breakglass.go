// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

// Options say which configurations are followed.
type Options struct {
	// Objects reaches the cluster.
	Objects dynamic.Interface
	// Names are those of the validating and of the mutating webhook configurations,
	// which may be absent.
	Names []string
	// Clock is clock.RealClock{}, but in tests.
	Clock clock.Clock
}

// BreakGlass knows whether requests are to be admitted without being judged. It is
// safe for concurrent use.
type BreakGlass struct {
	clock   clock.PassiveClock
	targets []*target
}

// NewBreakGlass returns one that is closed until Run has seen otherwise.
func NewBreakGlass(o Options) *BreakGlass {
	g := &BreakGlass{clock: o.Clock}
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		for _, name := range o.Names {
			g.targets = append(g.targets, newTarget(o.Objects, resource, name, o.Clock))
		}
	}
	return g
}

// Open returns the window that is open, the one with the latest end when there are
// several. A server that has lost sight of the cluster closes at the end that it knows.
func (g *BreakGlass) Open() (Window, bool) {
	now := g.clock.Now()
	var latest Window
	for _, t := range g.targets {
		if open := t.open.Load(); open != nil && holds(open, now) && open.Until.After(latest.Until) {
			latest = *open
		}
	}
	return latest, !latest.Until.IsZero()
}

// holds says whether open is open at now, also when the clock was set back since.
func holds(open *Window, now time.Time) bool {
	return now.Before(open.Until) && open.Until.Sub(now) <= MaxWindow+skew
}

// Run follows the configurations, and puts them back, until ctx ends. It is called once.
func (g *BreakGlass) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, t := range g.targets {
		running.Go(func() { t.follow(ctx) })
		running.Go(func() { t.run(ctx) })
	}
	running.Wait()
}
