// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"errors"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
)

func TestObserverTells(t *testing.T) {
	w := newWorld(t)
	told := 0
	stop := w.watch(func() { told++ })
	other := w.watch(func() {})
	w.list()
	w.heard("a", 1)
	if err := w.Delete(leaseAt("a", start, nil)); err != nil {
		t.Fatal(err)
	}
	if told != 3 {
		t.Errorf("told %d times, want 3", told)
	}
	stop()
	other()
	w.heard("a", 1)
	if told != 3 || len(w.watchers) != 0 {
		t.Errorf("told %d times after the end; %d watch", told, len(w.watchers))
	}
	for _, err := range []error{w.Add("text"), w.Delete("text"), w.Replace([]any{"text"}, "1")} {
		if err == nil {
			t.Error("took what is no Lease")
		}
	}
}

// TestSweep: what was left behind is removed, and nothing else.
func TestSweep(t *testing.T) {
	api := newCluster()
	clock := clocktesting.NewFakeClock(start)
	leases := api.connect().Leases(namespace)
	o := newObserver(leases, leaseOfA, "a_1", clock)
	put := func(name string) *coordinationv1.Lease {
		t.Helper()
		lease, err := leases.Create(t.Context(), leaseAt(name, start, nil), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Add(lease); err != nil {
			t.Fatal(err)
		}
		return lease
	}
	put("killed")
	back := put("back")
	clock.Step(leaseDuration + sweepAfter - time.Second)
	put("killed-later")
	clock.Step(2 * time.Second)
	if _, err := leases.Update(t.Context(), back, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err) // what was not heard of yet
	}
	for _, lease := range o.leftBehind() {
		o.remove(t.Context(), lease)
	}
	var left []string
	for _, name := range []string{"killed", "killed-later", "back"} {
		if api.lease(t, leasePrefix+name) != nil {
			left = append(left, name)
		}
	}
	if want := []string{"killed-later", "back"}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}

// TestObserverFollows: an outage of kube-apiserver makes nobody believe that the
// others are gone, and is over soon after its end.
func TestObserverFollows(t *testing.T) {
	api := newCluster()
	conn, other := api.connect(), api.connect().Leases(namespace)
	clock := clocktesting.NewFakeClock(start)
	w := &world{observer: newObserver(conn.Leases(namespace), leaseOfA, "a_1", clock), t: t, clock: clock}
	go w.run(t.Context())
	write := func(name string, version int) {
		t.Helper()
		clock.Step(time.Millisecond)
		lease := leaseAt(name, clock.Now(), policiesAt(version))
		stored, err := other.Get(t.Context(), lease.Name, metav1.GetOptions{})
		if err != nil {
			_, err = other.Create(t.Context(), lease, metav1.CreateOptions{})
		} else {
			lease.ObjectMeta.ResourceVersion, lease.UID = stored.ResourceVersion, stored.UID
			_, err = other.Update(t.Context(), lease, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("a", 50)
	write("b", 9)
	const one = "in force on 1 of 2 replicas; waiting for b"
	eventually(t, "the Leases are not seen", func() bool { return w.pass() == one })
	conn.sever(errors.New("connection refused"))
	write("a", 50)
	write("b", 50)
	clock.Step(leaseDuration)
	if got := w.pass(); got != unknown {
		t.Errorf("got %q in an outage", got)
	}
	write("a", 50)
	conn.sever(nil)
	eventually(t, "the Leases are not seen after the outage", func() bool { return w.pass() == "" && conn.watched() })
	if err := other.Delete(t.Context(), leasePrefix+"a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deletion is not seen", func() bool { return w.pass() == unknown })
}

// TestBacklogInOrder: after a while in which nothing came, what was written meanwhile
// comes in the order in which it was. The own Lease may be the first, and the others
// seem to have ended: they are alive, and one of them lags.
func TestBacklogInOrder(t *testing.T) {
	write := catalog.Write{Kind: "Policy", ResourceVersion: "101"}
	const stall = 20 * time.Second
	tests := []struct {
		name   string
		before func(w *world)
		late   time.Duration // how long ago the renewals were made that come first
	}{
		{"what comes is old", func(*world) {}, stall - renewPeriod},
		// As if the own clock had been put back meanwhile.
		{"what comes seems new", func(*world) {}, 0},
		{"the own Lease was deleted meanwhile", func(w *world) { _ = w.Delete(leaseAt("a", start, nil)) }, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.list()
			w.heard("a", 100)
			w.heard("b", 100)
			w.watch(func() { // as followGate does
				if passed, _ := w.passed([]catalog.Write{write}); passed {
					t.Error("passed, and b lags")
				}
			})
			w.clock.Step(stall)
			test.before(w)
			for range 3 {
				renewed := w.clock.Now().Add(-test.late)
				w.see(leaseAt("a", renewed, policiesAt(101)))
				w.see(leaseAt("b", renewed, policiesAt(100)))
				w.clock.Step(renewPeriod)
			}
		})
	}
}

// TestFirstHeardLate: the Leases of others may have been listed long before this
// process sees its own.
func TestFirstHeardLate(t *testing.T) {
	w := newWorld(t)
	w.list(leaseAt("b", start, policiesAt(9)))
	w.clock.Step(leaseDuration)
	w.heard("a", 50)
	if got, want := w.pass(), "in force on 1 of 2 replicas; waiting for b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDrippingWatch: a watch that tells ever more late of many renewals of this
// replica, and of few of another one, does not make that one seem gone.
func TestDrippingWatch(t *testing.T) {
	w := newWorld(t)
	w.list()
	w.heard("a", 50)
	w.heard("b", 9)
	renewed := w.clock.Now()
	for range 10 {
		w.clock.Step(sight - time.Second)
		renewed = renewed.Add(publishPause)
		w.see(leaseAt("a", renewed, policiesAt(50)))
		if got := w.pass(); got == "" {
			t.Fatalf("passed at %v by what was written at %v", w.clock.Since(start), renewed.Sub(start))
		}
	}
}
