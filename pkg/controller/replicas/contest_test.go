// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
)

// lines are what was logged.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, text string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.text = append(l.text, text)
	}, funcr.Options{})
}

// with counts those that hold a text.
func (l *lines) with(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, text := range l.text {
		if strings.Contains(text, part) {
			count++
		}
	}
	return count
}

// rival is one of two processes with one identity, which write when the test says so.
type rival struct {
	*publisher
	t    *testing.T
	conn *connection
	logs *lines
}

func newRival(t *testing.T, api *cluster, clock *clocktesting.FakeClock, holder string) *rival {
	r := &rival{t: t, conn: api.connect(), logs: &lines{}}
	r.publisher = newPublisher(r.conn.Leases(namespace), leaseOfA, holder, &inForce{}, nil, clock)
	return r
}

func (r *rival) renew(version int) {
	r.t.Helper()
	if !r.publish(klog.NewContext(r.t.Context(), r.logs.logger()), policiesAt(version)) {
		r.t.Fatal(*r.failure.Load())
	}
}

// TestContest: as long as two processes have one identity, nobody is told that what is
// in force on one of them is in force on both, and each logs once why.
func TestContest(t *testing.T) {
	const (
		complaint = "another server has the identity a: give each its own --identity"
		over      = "No other server writes the Lease"
		nothing   = "{}"
	)
	api, clock := newCluster(), clocktesting.NewFakeClock(start)
	first, second := newRival(t, api, clock, "a_1"), newRival(t, api, clock, "a_2")
	says := func(want string) {
		t.Helper()
		if got := api.lease(t, leaseOfA).Annotations[enforcedAnnotation]; got != want {
			t.Fatalf("the Lease says %s, want %s", got, want)
		}
	}
	forced := func(version int) string { return fmt.Sprintf(`{"Binding":"1000","Policy":"%d"}`, version) }
	logged := func(one *rival, complaints, ends int) {
		t.Helper()
		if one.logs.with(complaint) != complaints || one.logs.with(over) != ends {
			t.Fatalf("%s logged %q", one.holder, one.logs.text)
		}
	}
	first.renew(5)
	says(forced(5))
	second.renew(9) // it may have been started again
	says(forced(9))
	logged(second, 0, 0)
	first.renew(5)
	says(nothing)
	second.renew(9)
	says(nothing)
	logged(first, 0, 0) // the other one may have been the last to write
	for range 10 {
		clock.Step(renewPeriod)
		first.renew(5)
		says(nothing)
		second.renew(9)
		says(nothing)
		logged(first, 1, 0)
		logged(second, 1, 0)
	}
	second.conn.sever(errors.New("connection refused"))
	first.renew(5)
	clock.Step(leaseDuration - time.Millisecond)
	first.renew(6)
	says(nothing)
	clock.Step(time.Millisecond)
	first.renew(7)
	says(forced(7))
	logged(first, 1, 1)
	second.conn.sever(nil)
	second.renew(9)
	says(nothing)
	first.renew(8)
	second.renew(9)
	first.renew(8)
	logged(first, 2, 1)
	logged(second, 1, 0)
}

// TestNoContest: a Lease that was restored, edited or left behind is taken and nothing
// is said of it.
func TestNoContest(t *testing.T) {
	api, clock := newCluster(), clocktesting.NewFakeClock(start)
	leases := api.connect().Leases(namespace)
	before := leaseAt("a", start.Add(-time.Hour), policiesAt(3))
	if _, err := leases.Create(t.Context(), before, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	one := newRival(t, api, clock, "a_2")
	put := func(holder *string) {
		t.Helper()
		lease := api.lease(t, leaseOfA)
		lease.Spec.HolderIdentity = holder
		if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	one.renew(5)
	put(nil)
	one.renew(5)
	if one.contested.Load() != nil {
		t.Error("nobody contests it")
	}
	put(before.Spec.HolderIdentity)
	one.renew(5)
	clock.Step(leaseDuration)
	one.renew(5)
	if got := api.lease(t, leaseOfA).Annotations[enforcedAnnotation]; got != `{"Binding":"1000","Policy":"5"}` || len(one.logs.text) != 0 {
		t.Errorf("the Lease says %s; logged is %q", got, one.logs.text)
	}
}

// TestContestIsSeen: two members with one identity notice each other, and who leads does
// not take the word of one for both.
func TestContestIsSeen(t *testing.T) {
	f := newFleet(t)
	leader := f.start()
	f.leader([]*server{leader})
	f.number = 1
	first := f.start()
	f.number = 1
	second := f.start()
	for _, one := range []*server{leader, first, second} {
		one.force.set(map[string]string{kind: "100"})
	}
	eventually(t, "they do not notice", func() bool {
		return first.publisher.contested.Load() != nil && second.publisher.contested.Load() != nil
	})
	leader.force.set(map[string]string{kind: "101"})
	second.force.set(map[string]string{kind: "101"})
	const want = "in force on 1 of 2 replicas; waiting for s2"
	eventually(t, "the leader does not know", func() bool {
		_, text := leader.Passed(catalog.Write{Kind: kind, ResourceVersion: "101"})
		return text == want
	})
	for _, one := range []*server{first, second} {
		eventually(t, "who shares an identity says that something is in force", func() bool {
			passed, _ := one.Passed(catalog.Write{Kind: kind, ResourceVersion: "1"})
			return !passed
		})
	}
}

// TestReclaim: who has lost the Lease writes it at once, and not when it would have been
// renewed; two who contest it do so once.
func TestReclaim(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	m, err := New(Options{Leases: newCluster().connect(), Namespace: namespace, Identity: "a", Enforcement: &inForce{}, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	own := leaseAt("a", start, policiesAt(5))
	own.Spec.HolderIdentity = &m.publisher.holder
	contested := start.Add(leaseDuration)
	steps := []struct {
		name string
		do   func() error
		want int
	}{
		{"another server", func() error { return m.observer.Add(leaseAt("b", start, policiesAt(5))) }, 0},
		{"its own", func() error { return m.observer.Add(own) }, 0},
		{"taken", func() error { return m.observer.Update(leaseOfRival(start.Add(time.Second), policiesAt(5))) }, 1},
		{"taken in a contest", func() error {
			m.publisher.contested.Store(&contested)
			return m.observer.Update(leaseOfRival(start.Add(time.Minute), policiesAt(5)))
		}, 0},
		{"deleted in a contest", func() error { return m.observer.Delete(own) }, 1},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		m.reclaim()
		if got := len(m.publisher.news); got != step.want {
			t.Errorf("%s: %d writes are due, want %d", step.name, got, step.want)
		}
		select {
		case <-m.publisher.news:
		default:
		}
	}
}

// TestDeletedLeaseIsBack: it is written again at once, and not when it would have been
// renewed.
func TestDeletedLeaseIsBack(t *testing.T) {
	api, clock := newCluster(), clocktesting.NewFakeClock(start)
	conn, force := api.connect(), &inForce{}
	force.set(policiesAt(5))
	m, err := New(Options{Leases: conn, Namespace: namespace, Identity: "a", Enforcement: force, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.Start(ctx, func(ctx context.Context) { <-ctx.Done() })
	t.Cleanup(func() {
		cancel()
		m.running.Wait()
	})
	eventually(t, "it is not seen", func() bool {
		passed, _ := m.Passed(catalog.Write{Kind: "Policy", ResourceVersion: "5"})
		return passed && conn.watched()
	})
	if err := conn.Leases(namespace).Delete(t.Context(), leaseOfA, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is not back", func() bool {
		if clock.Since(start) < renewPeriod/2 { // it rests after it has written
			clock.Step(publishPause / 20)
		}
		return api.lease(t, leaseOfA) != nil
	})
}
