// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const leaseOfA = leasePrefix + "a"

// published is a publisher at work.
type published struct {
	*publisher
	t     *testing.T
	api   *cluster
	conn  *connection
	clock *clocktesting.FakeClock
	force *inForce
	stop  func() // and wait
	ended chan struct{}
}

func publish(t *testing.T, api *cluster, holder string) *published {
	t.Helper()
	p := &published{t: t, api: api, conn: api.connect(), clock: clocktesting.NewFakeClock(start), force: &inForce{}}
	p.publisher = newPublisher(p.conn.Leases(namespace), leaseOfA, holder, p.force, nil, p.clock)
	ctx, cancel := context.WithCancel(t.Context())
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		p.run(ctx)
	}()
	p.stop = func() {
		cancel()
		<-p.ended
	}
	t.Cleanup(p.stop)
	return p
}

// pass lets time pass, once it is waited for: not while something is written.
func (p *published) pass(d time.Duration) {
	p.t.Helper()
	eventually(p.t, "nobody waits", p.clock.HasWaiters)
	p.clock.Step(d)
}

// until lets a little time pass again and again.
func (p *published) until(complaint string, condition func() bool) {
	p.t.Helper()
	eventually(p.t, complaint, func() bool {
		if condition() {
			return true
		}
		p.clock.Step(publishPause / 2)
		return false
	})
}

// wrote waits for a number of writes, and for what the Lease says then.
func (p *published) wrote(complaint string, writes int, enforced string) {
	p.t.Helper()
	eventually(p.t, complaint, func() bool { return p.api.writes(leaseOfA) >= writes })
	if got := p.api.writes(leaseOfA); got != writes {
		p.t.Fatalf("%s: %d writes, want %d", complaint, got, writes)
	}
	if got := p.api.lease(p.t, leaseOfA).Annotations[enforcedAnnotation]; got != enforced {
		p.t.Fatalf("%s: the Lease says %s, want %s", complaint, got, enforced)
	}
}

func TestPublish(t *testing.T) {
	const five, nine = `{"Binding":"1000","Policy":"5"}`, `{"Binding":"1000","Policy":"9"}`
	p := publish(t, newCluster(), "a_1")
	p.clock.Step(renewPeriod)
	if p.api.writes(leaseOfA) != 0 {
		t.Fatal("a replica is announced that has nothing in force")
	}
	p.force.set(policiesAt(5))
	p.until("it is not announced", func() bool { return p.api.writes(leaseOfA) > 0 })
	p.wrote("it is not announced once", 1, five)
	lease := p.api.lease(t, leaseOfA)
	if ptr.Deref(lease.Spec.HolderIdentity, "") != "a_1" || ptr.Deref(lease.Spec.LeaseDurationSeconds, 0) != 15 ||
		lease.Spec.AcquireTime == nil || !maps.Equal(lease.Labels, labels(leaseOfReplica)) {
		t.Errorf("the Lease is %+v", lease)
	}
	p.pass(publishPause)

	// What comes while a write rests is written once.
	p.force.set(policiesAt(7))
	p.wrote("an advance is not told", 2, `{"Binding":"1000","Policy":"7"}`)
	p.force.set(policiesAt(8))
	p.force.set(policiesAt(9))
	p.pass(publishPause)
	p.wrote("the last advance is not told", 3, nine)
	p.pass(publishPause)

	before := p.api.lease(t, leaseOfA).Spec.RenewTime.Time
	p.pass(renewPeriod - publishPause)
	p.wrote("it is not renewed", 4, nine)
	if after := p.api.lease(t, leaseOfA).Spec.RenewTime.Time; after.Sub(before) < renewPeriod-publishPause {
		t.Errorf("renewed from %v to %v", before, after)
	}

	// A set that is lost for ever is not announced any more.
	p.force.set(nil)
	p.pass(publishPause)
	<-p.ended
	if p.api.writes(leaseOfA) != 4 {
		t.Error("a replica is announced that has nothing in force any more")
	}
}

// TestPublishAgainstOthers: whatever happens to the Lease, it says soon what is in
// force here.
func TestPublishAgainstOthers(t *testing.T) {
	tests := []struct {
		name   string
		change func(p *published)
	}{
		{"someone has annotated it", func(p *published) {
			lease := p.api.lease(t, leaseOfA)
			lease.Annotations["a"] = "b"
			if _, err := p.api.connect().Leases(namespace).Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
		{"someone has taken its labels away", func(p *published) {
			lease := p.api.lease(t, leaseOfA)
			lease.Labels, lease.Annotations = nil, nil
			if _, err := p.api.connect().Leases(namespace).Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
		{"someone has deleted it", func(p *published) {
			if err := p.api.connect().Leases(namespace).Delete(t.Context(), leaseOfA, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
		{"kube-apiserver was gone", func(p *published) {
			p.conn.sever(errors.New("connection refused"))
			p.force.set(policiesAt(7))
			p.until("no failure", func() bool { return p.failure.Load() != nil })
			p.conn.sever(nil)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := publish(t, newCluster(), "a_1")
			p.force.set(policiesAt(5))
			p.wrote("it is not announced", 1, `{"Binding":"1000","Policy":"5"}`)
			p.pass(publishPause)
			test.change(p)
			p.force.set(policiesAt(9))
			p.until("it is not told", func() bool {
				lease := p.api.lease(t, leaseOfA)
				return lease != nil && lease.Annotations[enforcedAnnotation] == `{"Binding":"1000","Policy":"9"}` && lease.Labels[leaseLabel] == leaseOfReplica
			})
		})
	}
}

// TestPublishAfterACrash: a server that is started again has the Lease of the one
// before it.
func TestPublishAfterACrash(t *testing.T) {
	api := newCluster()
	first := publish(t, api, "a_1")
	first.force.set(policiesAt(5))
	first.wrote("it is not announced", 1, `{"Binding":"1000","Policy":"5"}`)
	first.stop()
	uid := api.lease(t, leaseOfA).UID
	second := publish(t, api, "a_2")
	if second.ready() == nil {
		t.Error("ready by the Lease of another process")
	}
	second.force.set(policiesAt(9))
	second.wrote("it is not announced", 2, `{"Binding":"1000","Policy":"9"}`)
	if lease := api.lease(t, leaseOfA); lease.UID != uid || *lease.Spec.HolderIdentity != "a_2" {
		t.Errorf("the Lease is %+v", lease)
	}
	if err := first.leave(t.Context()); err != nil || api.lease(t, leaseOfA) == nil {
		t.Errorf("%v; who leaves has taken the Lease of his successor", err)
	}
}

func TestLeave(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, leaseOfA, errors.New("no right"))
	tests := []struct {
		name   string
		before func(p *published)
		want   string
		left   bool
	}{
		{name: "its own Lease", before: func(*published) {}},
		{name: "it is gone", before: func(p *published) {
			if err := p.api.connect().Leases(namespace).Delete(t.Context(), leaseOfA, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "without the right", before: func(p *published) { p.conn.sever(forbidden) }, want: "delete the Lease " + leaseOfA + ": ", left: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := publish(t, newCluster(), "a_1")
			if err := p.leave(t.Context()); err != nil {
				t.Errorf("nothing to leave: %v", err)
			}
			p.mu.Lock()
			p.left = false
			p.mu.Unlock()
			p.force.set(policiesAt(5))
			p.wrote("it is not announced", 1, `{"Binding":"1000","Policy":"5"}`)
			test.before(p)
			got := ""
			if err := p.leave(t.Context()); err != nil {
				got = err.Error()
			}
			if (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			p.conn.sever(nil)
			p.force.set(policiesAt(6))
			p.pass(publishPause)
			p.pass(renewPeriod)
			p.stop()
			if left := p.api.lease(t, leaseOfA) != nil; left != test.left || p.api.writes(leaseOfA) != 1 {
				t.Errorf("the Lease is left %t, written %d times", left, p.api.writes(leaseOfA))
			}
		})
	}
}

func TestReady(t *testing.T) {
	api := newCluster()
	p := publish(t, api, "a_1")
	var age time.Duration
	known := false
	p.age = func(time.Time) (time.Duration, bool) { return age, known }
	want := func(want string) {
		t.Helper()
		got := ""
		if err := p.ready(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	want("the Lease portcullis-replica-a has not been written")
	p.conn.sever(errors.New("connection refused"))
	p.force.set(policiesAt(5))
	eventually(t, "the failure is not told", func() bool { return p.failure.Load() != nil })
	want("the Lease portcullis-replica-a has not been written: connection refused")
	p.conn.sever(nil)
	p.until("it is not announced", func() bool { return p.joined.Load() != nil })
	want("other servers may not have heard of this one")
	p.clock.Step(joinDelay)
	want("the last writes may not be in force")
	known, age = true, time.Millisecond
	want("the last writes may not be in force")
	p.passed.Store(false)
	age = 0
	want("")
	p.passed.Store(false)
	known = false
	want("the last writes may not be in force")
	p.clock.Step(joinPatience)
	want("")
	p.conn.sever(errors.New("connection refused"))
	p.force.set(policiesAt(6))
	want("")
}
