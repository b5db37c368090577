// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// writesAfterReady is how often each replica is asked once a policy is Ready.
const writesAfterReady = 20

// TestReadyMeansEverywhere: as soon as the condition Ready of a policy says so, no
// replica admits what the policy denies. It also measures how long that takes, and how
// long until the policy is in force.
func TestReadyMeansEverywhere(t *testing.T) {
	s := newScene(t, "ready-means-everywhere")
	doors := s.doors()
	if len(doors) != 2 {
		t.Fatalf("there are %d replicas, want 2", len(doors))
	}
	// After the tests before, the replicas may still have to find out who leads.
	const first = 9999
	s.store(s.newDenial(first))
	s.waitReady(s.policyName(first))
	var inForce, ready figures
	wrong := 0
	for i := range quickOr(10, 200) {
		ready = append(ready, s.timeToReady(i, doors, &inForce))
		for _, d := range doors {
			for range writesAfterReady {
				if denial, err := d.ask(t.Context(), s.configMap("bad", badKind(i))); err != nil || denial != s.denial(i) {
					wrong++
					t.Errorf("%s is Ready, and %s answers %q, %v", s.policyName(i), d.url, denial, err)
				}
			}
		}
	}
	t.Logf("create to Ready              %s", ready)
	t.Logf("create to in force on both   %s", inForce)
	t.Logf("wrong after Ready            %d of %d", wrong, len(ready)*len(doors)*writesAfterReady)
}

// timeToReady stores a policy and returns how long it took until it was Ready. When it
// is in force on all replicas is measured at their doors.
func (s *scene) timeToReady(i int, doors []*door, inForce *figures) time.Duration {
	s.Helper()
	policy, binding := s.newDenial(i)
	watching, err := s.policies.ValidatingAdmissionPolicies().Watch(s.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", policy.Name).String(),
	})
	if err != nil {
		s.Fatal(err)
	}
	defer watching.Stop()
	began := time.Now()
	s.store(policy, binding)
	var asking sync.WaitGroup
	var mu sync.Mutex
	last := time.Duration(0)
	for _, d := range doors {
		asking.Go(func() {
			took, err := d.untilDenied(s.Context(), s.configMap("bad", badKind(i)), began)
			if err != nil {
				s.Errorf("%s: %v", d.url, err)
			}
			mu.Lock()
			defer mu.Unlock()
			last = max(last, took)
		})
	}
	defer func() { *inForce = append(*inForce, last) }()
	defer asking.Wait()
	stuck := time.After(patience)
	for {
		select {
		case event, ok := <-watching.ResultChan():
			if !ok {
				s.Fatal("the watch has ended")
			}
			if seen, isPolicy := event.Object.(*v1alpha1.ValidatingAdmissionPolicy); isPolicy && isReady(seen) == nil {
				return time.Since(began)
			}
		case <-stuck:
			s.Fatalf("%s does not become Ready", policy.Name)
		}
	}
}

// untilDenied asks until the answer is a denial.
func (d *door) untilDenied(ctx context.Context, bad *corev1.ConfigMap, began time.Time) (time.Duration, error) {
	for time.Since(began) < patience {
		denial, err := d.ask(ctx, bad)
		if err != nil {
			return 0, err
		}
		if denial != "" {
			return time.Since(began), nil
		}
	}
	return 0, fmt.Errorf("not in force after %s", patience)
}

// TestKubectlWait: what users do: kubectl apply, kubectl wait, and then count on it.
func TestKubectlWait(t *testing.T) {
	s := newScene(t, "kubectl-wait")
	doors := s.doors()
	for i := range quickOr(3, 20) {
		name := s.policyName(i)
		s.run(s.manifests(i), "apply", "-f", "-")
		t.Cleanup(func() { _, _ = s.try("", "delete", "pvap,pvapb", name) })
		s.run("", "wait", "--for=condition=Ready", "pvap/"+name, "--timeout=60s")
		for _, d := range doors {
			if denial, err := d.ask(t.Context(), s.configMap("bad", badKind(i))); err != nil || denial != s.denial(i) {
				t.Errorf("kubectl wait has returned, and %s answers %q, %v", d.url, denial, err)
			}
		}
	}
}
