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
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
)

// refusedWithin is how soon a write of a policy fails without etcd. The server gives up
// after 2.5 s.
const refusedWithin = 3 * time.Second

// outage is what was seen while etcd was gone.
type outage struct {
	samples, unavailable int // of the APIService, one each second
	unready              int // answers of /readyz
	writes, refused      int // of policies
	refusals             figures
}

// TestEtcdGone kills the etcd of Portcullis. Verdicts stay right, replicas stay ready,
// and the APIService stays available; writes of policies are refused. Afterwards they are
// stored and in force.
func TestEtcdGone(t *testing.T) {
	s := newScene(t, "etcd-gone")
	const policies = 20
	s.storeDenials(policies)
	load := s.startLoad(policies, 50)
	s.wait("writes", func(context.Context) error { return load.atLeast(50) })

	s.Storage.Kill()
	length := quickOr(5*time.Second, time.Minute)
	seen := s.watchOutage(length)
	if err := s.Storage.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	policy, binding := s.newDenial(policies)
	s.wait("a write of a binding", func(ctx context.Context) error {
		_, err := s.policies.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
		return ignoreExists(err)
	})
	s.wait("a write of a policy", func(ctx context.Context) error {
		_, err := s.policies.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
		return ignoreExists(err)
	})
	t.Cleanup(func() { _, _ = s.try("", "delete", "pvap,pvapb", policy.Name) })
	for _, d := range s.doors() {
		if _, err := d.untilDenied(t.Context(), s.configMap("bad", badKind(policies)), back); err != nil {
			t.Error(err)
		}
	}
	recovered := time.Since(back)
	s.waitReady(policy.Name)
	result := load.end()
	t.Logf("etcd was gone for      %s", length)
	t.Logf("load                   %s", result)
	t.Logf("APIService unavailable %d of %d seconds", seen.unavailable, seen.samples)
	t.Logf("replicas unready       %d times", seen.unready)
	t.Logf("writes refused         %d of %d; %s", seen.refused, seen.writes, seen.refusals)
	t.Logf("in step after          %s", recovered)
	if result.bypassed+result.failed+seen.unavailable+seen.unready != 0 || seen.refused != seen.writes {
		t.Error("a promise is broken")
	}
	if full() && seen.slow() {
		t.Errorf("a write was refused after more than %s", refusedWithin)
	}
}

func (o *outage) slow() bool {
	for _, took := range o.refusals {
		if took > refusedWithin {
			return true
		}
	}
	return false
}

// watchOutage looks at everything once a second.
func (s *scene) watchOutage(length time.Duration) *outage {
	s.Helper()
	config := rest.CopyConfig(s.Config)
	config.Timeout = writeTimeout
	client, err := versioned.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	seen := &outage{}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(length); time.Now().Before(end); <-tick.C {
		seen.samples++
		if err := s.available(); err != nil {
			seen.unavailable++
			s.Logf("without etcd: %v", err)
		}
		for _, replica := range s.live() {
			for _, path := range []string{"/readyz", "/livez"} {
				if err := s.get(replica, path); err != nil {
					seen.unready++
					s.Logf("without etcd: %v", err)
				}
			}
		}
		began := time.Now()
		policy, _ := s.newPolicy("refused-without-etcd", "true")
		_, err := client.PolicyV1alpha1().ValidatingAdmissionPolicies().Create(s.Context(), policy, metav1.CreateOptions{})
		seen.refusals = append(seen.refusals, time.Since(began))
		seen.writes++
		if is5xx(err) && strings.Contains(err.Error(), "does not answer") {
			seen.refused++
		} else {
			s.Logf("a write without etcd: %v", err)
		}
	}
	return seen
}
