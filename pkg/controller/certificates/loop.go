// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// poll is how often there is a look at least: certificates end without an event.
	poll = time.Minute
	// leastRest and mostRest bound the rest after a look. It grows with each look
	// that fails or writes, so that two who want different things fight slowly.
	leastRest = time.Second
	mostRest  = time.Minute
	// alarmPeriod is how long the log is spared what it has been told.
	alarmPeriod = time.Hour
)

// loop looks again and again, one look at a time.
type loop struct {
	// name says in the log what is looked after.
	name   string
	clock  clock.Clock
	wakes  chan struct{} // holds one
	alarms alarms
}

func newLoop(name string, c clock.Clock) *loop {
	return &loop{name: name, clock: c, wakes: make(chan struct{}, 1), alarms: alarms{}}
}

// wake asks for a look as soon as the rest is over. It does not wait.
func (l *loop) wake() {
	select {
	case l.wakes <- struct{}{}:
	default: // it has been asked for
	}
}

// run calls look at once, after each wake and at least once in each poll, until
// ctx ends. look says whether it has written anything.
func (l *loop) run(ctx context.Context, look func(context.Context) (wrote bool, err error)) {
	rest := leastRest
	busy := l.clock.Now()
	failing := false
	for {
		wrote, err := look(ctx)
		if ctx.Err() != nil {
			return
		}
		now := l.clock.Now()
		l.report(ctx, failing, err)
		switch {
		case wrote:
			busy = now
		case err == nil && (failing || now.Sub(busy) > 2*mostRest):
			rest = leastRest
		}
		failing = err != nil
		if !l.wait(ctx, rest, nil) || !failing && !l.wait(ctx, poll, l.wakes) {
			return
		}
		if failing || wrote {
			rest = min(2*rest, mostRest)
		}
	}
}

// report tells the log of err, or that there is none any more. That another replica
// was faster once is no news.
func (l *loop) report(ctx context.Context, failing bool, err error) {
	const what = "failing"
	switch {
	case err == nil && failing:
		if _, told := l.alarms[what]; told {
			delete(l.alarms, what)
			klog.FromContext(ctx).Info("Certificates are kept again", "of", l.name)
		}
	case err != nil && (failing || !apierrors.IsConflict(err)) && l.alarms.due(what, l.clock.Now()):
		klog.FromContext(ctx).Error(err, "Certificates cannot be kept; trying on", "of", l.name)
	}
}

// wait returns false when ctx ends before the time is over or early comes.
func (l *loop) wait(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := l.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
	case <-early:
	}
	return true
}

// alarms remember what the log has been told, and when.
type alarms map[string]time.Time

// due says whether the log is to be told of what, and remembers that it was.
func (a alarms) due(what string, now time.Time) bool {
	if last, ok := a[what]; ok && now.Sub(last) < alarmPeriod {
		return false
	}
	a[what] = now
	return true
}
