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
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/policystatus"
)

const kind = "ValidatingAdmissionPolicy"

// policies are stored, reported as in force by all servers, and counted when their
// status is written.
type policies struct {
	mu      sync.Mutex
	version int
	byName  map[string]*v1alpha1.ValidatingAdmissionPolicy
	since   map[string]int
	writes  map[string]int
	notify  map[int]func(policy.ID)
	watched int
	ready   map[string]chan struct{} // closed when the policy is ready
}

func newPolicies() *policies {
	return &policies{
		version: 100, byName: map[string]*v1alpha1.ValidatingAdmissionPolicy{}, since: map[string]int{}, writes: map[string]int{},
		notify: map[int]func(policy.ID){}, ready: map[string]chan struct{}{},
	}
}

func (p *policies) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1alpha1.ValidatingAdmissionPolicy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stored, ok := p.byName[name]; ok {
		return stored.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

func (p *policies) List(context.Context, metav1.ListOptions) (*v1alpha1.ValidatingAdmissionPolicyList, error) {
	return nil, errors.New("not now")
}

func (p *policies) UpdateStatus(ctx context.Context, stored *v1alpha1.ValidatingAdmissionPolicy, _ metav1.UpdateOptions) (*v1alpha1.ValidatingAdmissionPolicy, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if stored.ResourceVersion != p.byName[stored.Name].ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{}, stored.Name, errors.New("it has changed"))
	}
	p.version++
	stored = stored.DeepCopy()
	stored.ResourceVersion = fmt.Sprint(p.version)
	p.byName[stored.Name] = stored
	p.writes[stored.Name]++
	if meta.IsStatusConditionTrue(stored.Status.Conditions, policystatus.Ready) {
		close(p.ready[stored.Name])
	}
	return stored, nil
}

func (p *policies) Report(id policy.ID) (catalog.Report, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stored, ok := p.byName[id.Name]
	if !ok {
		return catalog.Report{}, false
	}
	return catalog.Report{UID: stored.UID, Generation: 1, Bindings: 1, Since: fmt.Sprint(p.since[id.Name])}, true
}

func (p *policies) Watch(notify func(policy.ID)) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched++
	watch := p.watched
	p.notify[watch] = notify
	for name := range p.byName {
		notify(policy.ID{Kind: kind, Name: name})
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.notify, watch)
	}
}

// create stores a policy that is in force at once on the server that reports, and
// returns the version of that write.
func (p *policies) create(name string) (version int, ready <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	stored := &v1alpha1.ValidatingAdmissionPolicy{}
	stored.Name, stored.UID, stored.Generation, stored.ResourceVersion = name, types.UID(name), 1, fmt.Sprint(p.version)
	p.byName[name], p.since[name], p.ready[name] = stored, p.version, make(chan struct{})
	for _, notify := range p.notify {
		notify(policy.ID{Kind: kind, Name: name})
	}
	return p.version, p.ready[name]
}

// isReady says whether the condition of a policy is true.
func (p *policies) isReady(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return meta.IsStatusConditionTrue(p.byName[name].Status.Conditions, policystatus.Ready)
}

// server is one of the replicas, with the times of its elections made short.
type server struct {
	*Member
	conn  *connection
	force *inForce
	kill  func() // ends it without Leave
	leads atomic.Bool
	etcd  atomic.Pointer[error] // why it cannot be reached
	terms atomic.Int64
}

// fleet are all servers.
type fleet struct {
	t        testing.TB
	api      *cluster
	policies *policies
	leading  atomic.Int64
	number   int
}

func (f *fleet) start() *server {
	f.t.Helper()
	f.number++
	s := &server{conn: f.api.connect(), force: &inForce{}}
	var err error
	s.Member, err = New(Options{Leases: s.conn, Namespace: namespace, Identity: fmt.Sprintf("s%d", f.number), Enforcement: s.force, Able: func() error {
		if err := s.etcd.Load(); err != nil {
			return *err
		}
		return nil
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	s.elector.config.LeaseDuration = 2 * time.Second // Leases have no shorter time than seconds
	s.elector.config.RenewDeadline = 500 * time.Millisecond
	s.elector.config.RetryPeriod = 20 * time.Millisecond
	s.elector.ablePeriod, s.elector.standDownAfter = 5*time.Millisecond, 50*time.Millisecond
	s.force.set(map[string]string{kind: "1000000"})
	ctx, cancel := context.WithCancel(f.t.Context())
	controller := policystatus.NewGated(f.policies, f.policies, s.Member)
	s.Start(ctx, func(ctx context.Context) {
		if f.leading.Add(1) > 1 {
			f.t.Error("two servers lead")
		}
		defer f.leading.Add(-1)
		s.leads.Store(true)
		defer s.leads.Store(false)
		s.terms.Add(1)
		controller.Run(ctx)
	})
	s.kill = func() {
		cancel()
		s.running.Wait()
	}
	f.t.Cleanup(s.kill)
	return s
}

func newFleet(t testing.TB) *fleet { return &fleet{t: t, api: newCluster(), policies: newPolicies()} }

// leader waits for the server that leads.
func (f *fleet) leader(servers []*server) (leader *server, others []*server) {
	f.t.Helper()
	eventually(f.t, "nobody leads", func() bool {
		leader, others = nil, nil
		for _, one := range servers {
			if one.leads.Load() {
				leader = one
			} else {
				others = append(others, one)
			}
		}
		return leader != nil
	})
	return leader, others
}

// TestLeaderChanges: each policy gets its conditions, once, whoever leads when it is
// written and however the leader goes.
func TestLeaderChanges(t *testing.T) {
	const changes = 20
	f := newFleet(t)
	servers := []*server{f.start(), f.start(), f.start()}
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			f.policies.create(fmt.Sprintf("p%d", i))
			time.Sleep(time.Millisecond)
		}
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
		if f.api.lease(t, leasePrefix+leader.observer.own) != nil {
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
	if writes := f.policies.writes["p"] + f.policies.writes["q"]; writes != 3 {
		t.Errorf("%d writes, want 3", writes)
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
