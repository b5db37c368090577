// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/controller/policystatus"
)

// TestLeaderChanges: each policy gets its conditions, once, whoever leads when it is
// written and however the leader goes.
func TestLeaderChanges(t *testing.T) {
	const (
		changes = 20
		pending = 16 // policies without conditions at a time
	)
	f := newFleet(t)
	servers := []*server{f.start(), f.start(), f.start()}
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		created := 0
		_ = wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(context.Context) (bool, error) {
			if created < pending || f.policies.isReady(fmt.Sprintf("p%d", created-pending)) {
				f.policies.create(fmt.Sprintf("p%d", created))
				created++
			}
			return false, nil
		})
	})
	for change := range changes {
		leader, others := f.leader(servers)
		if change%7 == 3 {
			// It loses its connection, stops to lead, and stands for election again.
			leader.conn.sever(errors.New("connection refused"))
			eventually(t, "who cannot renew still leads", func() bool { return !leader.leads.Load() })
			f.leader(others)
			leader.conn.sever(nil)
			continue
		}
		if err := leader.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.api.lease(t, leader.observer.own) != nil {
			t.Error("who has left is waited for")
		}
		servers = append(others, f.start())
	}
	cancel()
	writing.Wait()
	f.leader(servers)
	f.policies.mu.Lock()
	names := slices.Collect(maps.Keys(f.policies.byName))
	f.policies.mu.Unlock()
	eventually(t, "conditions are lost", func() bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !f.policies.isReady(name) })
	})
	for _, name := range names {
		if writes := f.policies.writes[name]; writes != 1 {
			t.Errorf("%s: written %d times", name, writes)
		}
	}
	terms := int64(0)
	for _, one := range servers {
		terms += one.terms.Load()
		one.kill()
	}
	if terms == 0 || len(f.policies.notify) != 0 {
		t.Errorf("%d terms; %d watches are left", terms, len(f.policies.notify))
	}
}

// TestReadyWaitsForAll: what is ready was in force everywhere, and one replica more or
// less changes nothing about that.
func TestReadyWaitsForAll(t *testing.T) {
	f := newFleet(t)
	first, second := f.start(), f.start()
	reach := func(version int, servers ...*server) {
		for _, one := range servers {
			one.force.set(map[string]string{kind: fmt.Sprint(version)})
		}
	}
	reach(100, first, second)
	f.leader([]*server{first, second})
	says := func(servers int) func() bool {
		return func() bool {
			_, text := first.Passed(catalog.Write{Kind: kind, ResourceVersion: "101"})
			return strings.HasPrefix(text, fmt.Sprintf("in force on 0 of %d replicas; waiting for s1", servers))
		}
	}
	eventually(t, "the replicas do not know of each other", says(2))
	version, ready := f.policies.create("p")
	reach(version, first)
	eventually(t, "one replica does not tell", func() bool {
		_, text := second.Passed(catalog.Write{Kind: kind, ResourceVersion: fmt.Sprint(version)})
		return text == "in force on 1 of 2 replicas; waiting for s2"
	})
	third := f.start() // it has read everything
	eventually(t, "it is long on its way, and the condition does not say so", func() bool {
		p, err := f.policies.Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		condition := meta.FindStatusCondition(p.Status.Conditions, policystatus.Ready)
		return condition != nil && condition.Status == metav1.ConditionUnknown && condition.Message == "in force on 2 of 3 replicas; waiting for s2"
	})
	reach(version, second)
	<-ready
	if err := third.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	version, ready = f.policies.create("q")
	reach(version, first, second)
	<-ready
	if f.policies.idle > 0 { // how many there are is a matter of time
		t.Errorf("%d writes have said nothing new", f.policies.idle)
	}
}

// TestWithoutKubeAPIServer: a replica without kube-apiserver stays ready, and one that
// is new is not.
func TestWithoutKubeAPIServer(t *testing.T) {
	f := newFleet(t)
	s := f.start()
	eventually(t, "it is not ready", func() bool { return s.Ready() == nil })
	f.leader([]*server{s})
	s.conn.sever(errors.New("connection refused"))
	eventually(t, "it still leads", func() bool { return !s.leads.Load() })
	if err := s.Ready(); err != nil {
		t.Error(err)
	}
	_, ready := f.policies.create("p")
	s.conn.sever(nil)
	<-ready
	if err := newFleet(t).start().Ready(); err == nil {
		t.Error("ready at once")
	}
}

// TestLeaderWithoutEtcd: who cannot write leaves it to one who can.
func TestLeaderWithoutEtcd(t *testing.T) {
	f := newFleet(t)
	servers := []*server{f.start(), f.start()}
	gone := errors.New("etcd does not answer")
	for range 3 {
		leader, others := f.leader(servers)
		leader.etcd.Store(&gone)
		if next, _ := f.leader(others); next == leader {
			t.Fatal("who cannot write leads again")
		}
		leader.etcd.Store(nil)
	}
	for _, one := range servers {
		one.etcd.Store(&gone)
	}
	eventually(t, "somebody leads, and nobody can write", func() bool { return f.leading.Load() == 0 })
	servers[0].etcd.Store(nil)
	f.leader(servers[:1])
}

// TestLeaderWithNothingInForce: a server that can say nothing of policies does not
// keep the others from saying it.
func TestLeaderWithNothingInForce(t *testing.T) {
	f := newFleet(t)
	s := f.start()
	f.leader([]*server{s})
	s.force.set(nil)
	eventually(t, "it still leads", func() bool { return !s.leads.Load() })
	s.running.Wait()
	if holder := f.api.lease(t, leaderName).Spec.HolderIdentity; ptr.Deref(holder, "") != "" {
		t.Errorf("%s keeps the Lease of the leader", *holder)
	}
}

func TestNew(t *testing.T) {
	valid := Options{Leases: newCluster().connect(), Namespace: "n", Identity: "a", Enforcement: &inForce{}}
	tests := []struct {
		name   string
		change func(o *Options)
		want   string
	}{
		{"no client", func(o *Options) { o.Leases = nil }, "replica: no client of Leases, or nothing that says what is in force"},
		{"nothing in force", func(o *Options) { o.Enforcement = nil }, "replica: no client of Leases, or nothing that says what is in force"},
		{"no namespace", func(o *Options) { o.Namespace = "" }, "replica: no namespace for the Leases"},
		{"no identity", func(o *Options) { o.Identity = "" }, "replica: no identity"},
		{"no name", func(o *Options) { o.Identity = "A_b" }, `replica: identity "A_b" cannot be part of the name of a Lease: `},
		{"valid", func(*Options) {}, ""},
	}
	for _, test := range tests {
		options, got := valid, ""
		test.change(&options)
		if _, err := New(options); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// BenchmarkReady measures how long a policy takes from when it is in force on two
// replicas until its condition says so, beside the network and etcd.
func BenchmarkReady(b *testing.B) {
	f := newFleet(b)
	servers := []*server{f.start(), f.start()}
	f.leader(servers)
	for _, one := range servers {
		one.force.set(map[string]string{kind: "1"})
	}
	eventually(b, "the replicas do not know of each other", func() bool {
		_, text := servers[0].Passed(catalog.Write{Kind: kind, ResourceVersion: "2"})
		return text == "in force on 0 of 2 replicas; waiting for s1, s2"
	})
	var took []time.Duration
	for b.Loop() {
		version, ready := f.policies.create(fmt.Sprintf("p%d", len(took)))
		began := time.Now()
		for _, one := range servers {
			one.force.set(map[string]string{kind: fmt.Sprint(version)})
		}
		<-ready
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
}
