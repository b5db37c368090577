// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKilled kills replicas without a warning, one after the other and now and then
// both, and starts them again. Writes may fail meanwhile. No bad one is admitted: not
// by the other replica, and not by the one that starts, which is asked at its own port
// before it can know all policies.
func TestKilled(t *testing.T) {
	s := newScene(t, "killed")
	policies, cycles := quickOr(50, 500), quickOr(3, 50)
	s.storeDenials(policies)

	load := s.startLoad(policies, 50)
	var unheard, denied int
	for cycle := range cycles {
		victims := s.live()
		if cycle%3 != 2 {
			victims = victims[cycle%len(victims):][:1]
		}
		for _, victim := range victims {
			victim.Kill()
		}
		for _, victim := range victims {
			siege := s.besiege(victim, policies)
			if err := victim.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			for !siege.heard() && t.Context().Err() == nil {
				siege.pause()
			}
			siege.end()
			unheard, denied = unheard+siege.unheard, denied+siege.denied
			if siege.admitted != 0 || len(siege.wrong) != 0 {
				t.Errorf("cycle %d: %s admitted %d of %d bad ConfigMaps, and answered: %q", cycle, victim.Identity, siege.admitted, siege.admitted+siege.denied, siege.wrong)
			}
		}
		s.waitWhole()
	}
	result := load.end()
	t.Logf("cycles             %d, with %d policies", cycles, policies)
	t.Logf("load               %s", result)
	t.Logf("asked at the start %d times not heard, %d denied", unheard, denied)
	if result.bypassed != 0 {
		t.Error("bad ConfigMaps were admitted")
	}
}

// TestManyAtOnce sends many writes at the same time to replicas to which kube-apiserver
// has no connection yet. None of them is refused for that.
func TestManyAtOnce(t *testing.T) {
	s := newScene(t, "many-at-once")
	const writes = 150
	client := s.hurried(writeTimeout)
	for round := range quickOr(2, 20) {
		for _, victim := range s.live() {
			victim.Kill()
			if err := victim.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.waitWhole()
		var writing sync.WaitGroup
		for i := range writes {
			writing.Go(func() {
				object := s.configMap(fmt.Sprintf("many-%d-%d", round, i), goodKind)
				if _, err := client.CoreV1().ConfigMaps(s.namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		writing.Wait()
	}
}
