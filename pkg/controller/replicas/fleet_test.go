// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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
	idle    int // writes of a status that says of Ready what it said before
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
	said := func(of *v1alpha1.ValidatingAdmissionPolicy) metav1.Condition {
		if condition := meta.FindStatusCondition(of.Status.Conditions, policystatus.Ready); condition != nil {
			return *condition
		}
		return metav1.Condition{}
	}
	if said(stored) == said(p.byName[stored.Name]) {
		p.idle++
	}
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
	controller := policystatus.New([]policystatus.Kind{policystatus.ValidatingAdmissionPolicies(f.policies)}, f.policies, s.Member)
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
