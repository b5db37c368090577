// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyclient "github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned/typed/policy/v1alpha1"
)

const (
	acknowledgedWrites = 1000
	writers            = 16
)

// TestKillKeepsAcknowledgedWrites kills the server once it has acknowledged a
// thousand policies, while more are being written.
func TestKillKeepsAcknowledgedWrites(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), "data")
	s := launchReady(t, dataDir)
	began := time.Now()
	acknowledged := writeUntilKilled(t, s)
	t.Logf("%d writes acknowledged in %s", len(acknowledged), time.Since(began))
	if len(acknowledged) < acknowledgedWrites {
		t.Fatalf("%d writes acknowledged before the server was gone, want %d", len(acknowledged), acknowledgedWrites)
	}

	began = time.Now()
	restarted := launchReady(t, dataDir)
	t.Logf("ready again after %s", time.Since(began))
	stored := listUIDs(t, restarted.client(t).PolicyV1alpha1().ValidatingAdmissionPolicies())
	lost := maps.Clone(acknowledged)
	maps.DeleteFunc(lost, func(name, uid string) bool { return stored[name] == uid })
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged policies are lost: %v", len(lost), len(acknowledged), lost)
	}
	if most := len(acknowledged) + writers; len(stored) > most {
		t.Errorf("%d policies are stored, want at most %d: those acknowledged, and one of each writer", len(stored), most)
	}
	restarted.terminate(t)
}

// writeUntilKilled returns the uid of each policy whose creation was acknowledged, by name.
func writeUntilKilled(t *testing.T, s *server) map[string]string {
	t.Helper()
	policies := s.client(t).PolicyV1alpha1().ValidatingAdmissionPolicies()
	enough := make(chan struct{})
	var (
		next         atomic.Int64
		mu           sync.Mutex
		acknowledged = map[string]string{}
		group        sync.WaitGroup
	)
	for range writers {
		group.Go(func() {
			for {
				name := fmt.Sprintf("policy-%05d", next.Add(1))
				created, err := policies.Create(t.Context(), newPolicy(name), metav1.CreateOptions{})
				if err != nil {
					return // the server is gone
				}
				mu.Lock()
				acknowledged[name] = string(created.UID)
				if len(acknowledged) == acknowledgedWrites {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
	case <-s.exited:
	case <-time.After(patience):
		t.Errorf("no %d writes within %s", acknowledgedWrites, patience)
	}
	s.kill(t)
	group.Wait()
	return acknowledged
}

func listUIDs(t *testing.T, policies policyclient.ValidatingAdmissionPolicyInterface) map[string]string {
	t.Helper()
	uids := map[string]string{}
	options := metav1.ListOptions{Limit: 300}
	for {
		page, err := policies.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Items {
			uids[page.Items[i].Name] = string(page.Items[i].UID)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return uids
		}
	}
}
