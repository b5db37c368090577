// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"testing"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

// TestRollingRestart replaces all replicas, one after the other, under load, as the
// Deployment does: maxSurge 1, maxUnavailable 0. No write is lost, and none is
// admitted unjudged.
func TestRollingRestart(t *testing.T) {
	s := newScene(t, "rolling-restart")
	const policies = 20
	s.storeDenials(policies)
	generation := s.generation()

	load := s.startLoad(policies, quickOr(50, 100))
	restarts := 0
	for wanted := quickOr(300, 10_000); restarts == 0 || load.count() < wanted; {
		for _, old := range s.live() {
			s.replace(old)
			restarts++
		}
	}
	result := load.end()
	t.Logf("replicas replaced  %d", restarts)
	t.Logf("load               %s", result)
	if result.failed+result.bypassed != 0 {
		t.Error("a rolling restart has lost writes, or let bad ones pass")
	}
	if now := s.generation(); now != generation {
		t.Errorf("the APIService has generation %d, and had %d before: no replica may write its spec", now, generation)
	}
}

// replace starts a replica, and stops the old one when the new one is ready.
func (s *scene) replace(old *cluster.Replica) {
	s.Helper()
	next, err := s.NewReplica()
	if err != nil {
		s.Fatal(err)
	}
	if err := next.Start(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.waitBalanced(s.live()...)
	if err := old.Stop(); err != nil {
		s.Fatal(err)
	}
	s.Balancer.Remove(old.Address)
}
