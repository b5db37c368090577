// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"context"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// TestGateIsAskedNowAndThen: however often the gate tells of something new, the
// policies that wait are gone over once in a while, and what came last is seen.
func TestGateIsAskedNowAndThen(t *testing.T) {
	gate := &gate{text: "in force on 1 of 2 replicas; waiting for b"}
	told := &reports{}
	told.set("p", reported("p", 1, 1))
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	c := New(kindsOf(&store{}), told, gate)
	c.propagation.clock = clock
	c.propagation.wait(idOf("p"))
	c.propagation.note(idOf("p"), gate.text)
	added := make(chan policy.ID, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.followGate(ctx, func(id policy.ID) { added <- id })
	}()
	eventually(t, "the gate is not watched", func() bool { return gate.watched() == 1 && clock.HasWaiters() })
	gate.tell()
	eventually(t, "no rest", func() bool { return clock.Waiters() == 2 })
	if asked := gate.count(); asked != 1 {
		t.Fatalf("asked %d times, want once", asked)
	}
	for range 100 {
		gate.tell()
	}
	gate.set(true, "")
	gate.tell()
	if asked := gate.count(); asked != 1 || len(added) != 0 {
		t.Errorf("asked %d times in a rest", asked)
	}
	clock.Step(roundPause)
	if id := <-added; id != idOf("p") {
		t.Errorf("%s is added", id.Name)
	}
	eventually(t, "no rest", func() bool { return clock.Waiters() == 2 })
	if asked := gate.count(); asked != 2 {
		t.Errorf("asked %d times, want twice", asked)
	}
	cancel() // in a rest
	<-ended
	if gate.watched() != 0 || clock.Waiters() != 1 { // the clock keeps tickers that were stopped
		t.Errorf("%d watches and %d timers are left", gate.watched(), clock.Waiters()-1)
	}
}
