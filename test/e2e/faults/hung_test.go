// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHung lets a replica hang, with its connections open. Writes that reach it are
// refused in the time of the webhook. Others reach the other replica, and after a while
// all do, without anybody's help.
func TestHung(t *testing.T) {
	s := newScene(t, "hung")
	s.storeDenials(1)
	load := s.startLoad(1, 20)
	s.wait("writes", func(context.Context) error { return load.atLeast(20) })

	// It is the one that kube-apiserver asks: the next write is refused.
	victim := s.live()[0]
	if err := victim.Pause(); err != nil {
		t.Fatal(err)
	}
	hung := time.Now()
	s.waitBalanced(s.live()[1:]...)
	out := time.Since(hung)
	// Until nothing fails any more.
	calm := quickOr(5*time.Second, 20*time.Second)
	s.wait("writes that succeed", func(context.Context) error { return load.calmSince(calm) })
	healed := time.Since(hung) - calm
	if err := victim.Resume(); err != nil {
		t.Fatal(err)
	}
	s.waitWhole()
	result := load.end()
	t.Logf("out of the balancer after  %s", out)
	t.Logf("last failure after         %s", healed)
	t.Logf("load                       %s", result)
	if result.bypassed != 0 {
		t.Error("a replica that hangs lets bad writes pass")
	}
	for reason := range result.why {
		if !strings.Contains(reason, "failed calling webhook") {
			t.Errorf("a write was refused for another reason: %s", reason)
		}
	}
	if _, err := s.kube.CoreV1().ConfigMaps(s.namespace).Create(t.Context(), s.configMap("after", goodKind), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}
