// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

// calm is longer than a write is waited for: what is refused is known by then.
const calm = reviewTimeout + 2*time.Second

// TestHung lets each replica hang for a while, with its connections open. Writes that
// reach it are refused in the time of the webhook. Others reach the other replica, and
// after a while all do, without anybody's help.
func TestHung(t *testing.T) {
	s := newScene(t, "hung")
	s.storeDenials(1)
	load := s.startLoad(1, 20)
	s.wait("writes", func(context.Context) error { return load.atLeast(20) })
	for _, victim := range s.live() {
		s.hang(victim, load)
	}
	result := load.end()
	t.Logf("load  %s", result)
	if result.bypassed != 0 {
		t.Error("a replica that hangs lets bad writes pass")
	}
	if result.failed == 0 {
		t.Error("no write has reached a replica while it was hanging: this shows nothing")
	}
	for reason := range result.why {
		if !strings.Contains(reason, "failed calling webhook") {
			t.Errorf("a write was refused for another reason: %s", reason)
		}
	}
}

// hang lets a replica hang until writes do not fail any more.
func (s *scene) hang(victim *cluster.Replica, load *load) {
	s.Helper()
	var others []*cluster.Replica
	for _, replica := range s.live() {
		if replica != victim {
			others = append(others, replica)
		}
	}
	before := load.failed()
	began := time.Now()
	if err := victim.Pause(); err != nil {
		s.Fatal(err)
	}
	s.waitBalanced(others...)
	out := time.Since(began)
	// kube-apiserver has a connection to one replica at a time, or to a few.
	reached := load.stuckWithin(s.Context(), 3*time.Second)
	if reached {
		s.wait("writes that succeed", func(context.Context) error { return load.calmSince(began, calm) })
	}
	healed := time.Since(began) - calm
	if err := victim.Resume(); err != nil {
		s.Fatal(err)
	}
	s.waitWhole()
	if !reached {
		s.Logf("%s hangs: no write reaches it", victim.Identity)
		return
	}
	s.Logf("%s hangs: out of the balancer after %s; %d writes refused, the last of them begun after %s",
		victim.Identity, out.Round(time.Millisecond), load.failed()-before, healed.Round(time.Millisecond))
}
