// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"encoding/json"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// leaseAt is the Lease of a replica, renewed at some time by its own clock.
func leaseAt(identity string, renewed time.Time, enforced map[string]string) *coordinationv1.Lease {
	text, err := json.Marshal(enforced)
	if err != nil {
		panic(err)
	}
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: leasePrefix + identity, UID: types.UID(identity),
			Labels: labels(leaseOfReplica), Annotations: map[string]string{enforcedAnnotation: string(text)},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(identity + "_1"), RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: ptr.To[int32](15)},
	}
}

// world is what an observer sees, step by step.
type world struct {
	*observer
	t     *testing.T
	clock *clocktesting.FakeClock
}

func newWorld(t *testing.T) *world {
	clock := clocktesting.NewFakeClock(start)
	return &world{observer: newObserver(nil, leaseOfA, "a_1", clock), t: t, clock: clock}
}

// heard has the observer see a Lease that was renewed, a millisecond after the last one.
func (w *world) heard(identity string, version int) {
	w.clock.Step(time.Millisecond)
	w.see(leaseAt(identity, w.clock.Now(), policiesAt(version)))
}

// live lets time pass, in which this replica is heard of.
func (w *world) live(d time.Duration) {
	for ends := w.clock.Now().Add(d); w.clock.Now().Before(ends); {
		w.clock.Step(min(renewPeriod, ends.Sub(w.clock.Now())))
		w.heard("a", 50)
	}
}

func (w *world) see(lease *coordinationv1.Lease) {
	w.t.Helper()
	if err := w.Update(lease); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) list(leases ...*coordinationv1.Lease) {
	w.t.Helper()
	var list []any
	for _, lease := range leases {
		list = append(list, lease)
	}
	if err := w.Replace(list, "1"); err != nil {
		w.t.Fatal(err)
	}
}

const unknown = "?"

// pass is what Passed says of the policy that was written at version 50 and bound at 7.
func (w *world) pass() string {
	passed, text := w.passed([]catalog.Write{{Kind: "Policy", ResourceVersion: "50"}, {Kind: "Binding", ResourceVersion: "7"}})
	switch {
	case passed && text != "":
		w.t.Errorf("passed, and waiting: %s", text)
	case passed:
		return ""
	case text == "":
		return unknown
	}
	return text
}

func TestPassed(t *testing.T) {
	const one = "in force on 1 of 2 replicas; waiting for b"
	both := func(w *world, a, b int) {
		w.list()
		w.heard("a", a)
		w.heard("b", b)
	}
	tests := []struct {
		name string
		do   func(w *world)
		want string
	}{
		{"nothing was read", func(w *world) { w.heard("a", 60) }, unknown},
		{"there is nobody", func(w *world) { w.list() }, unknown},
		{"this one is not seen", func(w *world) { w.list(); w.heard("b", 60) }, unknown},
		{"alone", func(w *world) { w.list(); w.heard("a", 50) }, ""},
		{"alone, and behind", func(w *world) { w.list(); w.heard("a", 49) }, "in force on 0 of 1 replicas; waiting for a"},
		{"both", func(w *world) { both(w, 50, 100) }, ""},
		{"one lags", func(w *world) { both(w, 50, 9) }, one},
		{"this one lags", func(w *world) { both(w, 9, 50) }, "in force on 1 of 2 replicas; waiting for a"},
		{"it catches up", func(w *world) { both(w, 50, 9); w.heard("b", 51) }, ""},
		{"it goes back", func(w *world) { both(w, 50, 51); w.heard("b", 9) }, one},
		{"one joins, having read everything", func(w *world) { both(w, 50, 51); w.heard("c", 60) }, ""},
		{"one joins that has not", func(w *world) { both(w, 50, 51); w.heard("c", 40) }, "in force on 2 of 3 replicas; waiting for c"},
		{"the lagging one leaves", func(w *world) { both(w, 50, 9); _ = w.Delete(leaseAt("b", start, nil)) }, ""},
		{"it is missing in a list", func(w *world) { both(w, 50, 9); w.list(leaseAt("a", w.clock.Now(), policiesAt(50))) }, ""},
		{"it was killed a while ago", func(w *world) { both(w, 50, 9); w.live(14 * time.Second) }, one},
		{"it is given up", func(w *world) { both(w, 50, 9); w.live(15 * time.Second) }, ""},
		{"it is seen, and does not renew", func(w *world) {
			both(w, 50, 50)
			w.see(leaseAt("b", start, policiesAt(9)))
			w.live(10 * time.Second)
			w.see(leaseAt("b", start, policiesAt(9)))
			w.live(5 * time.Second)
		}, ""},
		{"it is back", func(w *world) { both(w, 50, 9); w.live(20 * time.Second); w.heard("b", 10) }, one},
		{"another one has its name", func(w *world) {
			both(w, 50, 9)
			w.live(20 * time.Second)
			lease := leaseAt("b", start.Add(2*time.Millisecond), policiesAt(9))
			lease.UID = "another"
			w.see(lease)
		}, one},
		{"nobody is heard of any more", func(w *world) { both(w, 50, 50); w.clock.Step(sight + time.Millisecond) }, unknown},
		{"nobody is heard of for a while", func(w *world) { both(w, 50, 50); w.clock.Step(sight - time.Millisecond) }, ""},
		{"this one is heard of late", func(w *world) {
			w.list(leaseAt("a", start.Add(-sight-time.Millisecond), policiesAt(50)), leaseAt("b", start, policiesAt(50)))
		}, unknown},
		{"the own clock has been put back", func(w *world) {
			w.list(leaseAt("a", start.Add(time.Hour), policiesAt(50)), leaseAt("b", start, policiesAt(50)))
		}, unknown},
		{"another process has the own name", func(w *world) {
			both(w, 50, 50)
			w.see(leaseOfRival(w.clock.Now(), policiesAt(60)))
		}, unknown},
		{"clocks differ", func(w *world) {
			w.list(leaseAt("a", start, policiesAt(50)), leaseAt("b", start.Add(time.Hour), policiesAt(9)), leaseAt("c", start.Add(-time.Hour), policiesAt(9)))
		}, "in force on 1 of 3 replicas; waiting for b, c"},
		{"clocks differ, and it was killed", func(w *world) {
			w.list(leaseAt("a", start, policiesAt(50)), leaseAt("b", start.Add(time.Hour), policiesAt(9)))
			w.live(15 * time.Second)
		}, ""},
		{"it wants to be waited for for ever", func(w *world) {
			lease := leaseAt("b", start, policiesAt(9))
			lease.Spec.LeaseDurationSeconds = ptr.To[int32](1_000_000)
			w.list(leaseAt("a", start, policiesAt(50)), lease)
			w.live(maxLeaseDuration)
		}, ""},
		{"it does not say for how long", func(w *world) {
			lease := leaseAt("b", start, policiesAt(9))
			lease.Spec.LeaseDurationSeconds = nil
			w.list(lease)
			w.heard("a", 50)
		}, one},
		{"it says nothing", func(w *world) { both(w, 50, 50); w.see(leaseAt("b", start, nil)) }, one},
		{"it does not know the kind", func(w *world) { both(w, 50, 50); w.see(leaseAt("b", start, map[string]string{"Policy": "60"})) }, one},
		{"it says what is no version", func(w *world) {
			both(w, 50, 50)
			w.see(leaseAt("b", start, map[string]string{"Policy": "many", "Binding": "9"}))
		}, one},
		{"it says what nobody can read", func(w *world) {
			both(w, 50, 50)
			lease := leaseAt("b", start, nil)
			lease.Annotations[enforcedAnnotation] = "{"
			w.see(lease)
		}, one},
		{"a Lease of something else", func(w *world) {
			both(w, 50, 50)
			w.see(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaderName}})
		}, ""},
		{"many lag", func(w *world) {
			both(w, 50, 9)
			for _, name := range []string{"f", "e", "d", "c"} {
				w.heard(name, 9)
			}
		}, "in force on 1 of 6 replicas; waiting for b, c, d and 2 more"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.do(w)
			if got := w.pass(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestUnknownWritesDoNotPass: a write of which no version is known is not in force.
func TestUnknownWritesDoNotPass(t *testing.T) {
	w := newWorld(t)
	w.list()
	w.heard("a", 50)
	if passed, _ := w.passed([]catalog.Write{{Kind: "Policy"}}); passed {
		t.Error("passed")
	}
}

// TestWhoDoesNotSeeItselfKnows: the Leases of others must not seem to end because
// nothing is heard any more, whenever they were renewed last.
func TestWhoDoesNotSeeItselfKnows(t *testing.T) {
	for late := time.Duration(0); late <= renewPeriod+time.Second; late += 100 * time.Millisecond {
		w := newWorld(t)
		w.list()
		w.heard("a", 50) // so that b gets no time anew
		w.heard("b", 9)
		w.clock.Step(late)
		w.heard("a", 50)
		for range 200 {
			w.clock.Step(100 * time.Millisecond)
			if got := w.pass(); got == "" {
				t.Fatalf("passed %v after the last Lease was seen, which was %v younger than that of the other", w.clock.Since(start)-late, late)
			}
		}
	}
}

// leaseOfRival is the Lease of this replica, written by another process.
func leaseOfRival(renewed time.Time, enforced map[string]string) *coordinationv1.Lease {
	lease := leaseAt("a", renewed, enforced)
	lease.Spec.HolderIdentity = ptr.To("a_2")
	return lease
}
