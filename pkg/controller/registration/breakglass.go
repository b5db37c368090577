// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

// Options say which configurations are followed.
type Options struct {
	// Objects reaches the cluster.
	Objects dynamic.Interface
	// Configurations are those that can open doors. They may be absent.
	Configurations []Configuration
	// Clock is clock.RealClock{}, but in tests.
	Clock clock.Clock
}

// Configuration is a webhook configuration that leads kube-apiserver to a door.
type Configuration struct {
	// Resource and Name say which one it is.
	Resource, Name string
	// Door is the path that one of its webhooks must have: what leads nowhere says
	// nothing, whoever has made it.
	Door string
	// Opens are the paths of the doors that let everything pass while its window is
	// open. No other configuration speaks for them.
	Opens []string
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
	for _, configuration := range o.Configurations {
		g.targets = append(g.targets, newTarget(o.Objects, configuration, o.Clock))
	}
	return g
}

// Open returns the window that is open for the door of that path, the one with the
// latest end when there are several. A server that has lost sight of the cluster closes
// at the end that it knows.
func (g *BreakGlass) Open(door string) (Window, bool) {
	now := g.clock.Now()
	var latest Window
	for _, t := range g.targets {
		if open := t.open.Load(); open != nil && slices.Contains(t.opens, door) && holds(open, now) && open.Until.After(latest.Until) {
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
