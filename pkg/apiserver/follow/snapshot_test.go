// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

func namedPolicies(versions versions) []policyapi.ValidatingAdmissionPolicy {
	var policies []policyapi.ValidatingAdmissionPolicy
	for name, version := range versions {
		policies = append(policies, policyapi.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name.Name, ResourceVersion: version}})
	}
	return policies
}

// storage holds objects, each call of Versions the next, and the last for ever.
type storage struct {
	Storage
	doubts, revision int64
	stored           []map[string]int64
	gone             error
	readAgain        int
}

func (s *storage) Current(context.Context) (doubts, revision int64, err error) {
	return s.doubts, s.revision, s.gone
}

func (s *storage) Versions(context.Context, schema.GroupResource) (versions map[string]int64, revision int64, err error) {
	if s.gone != nil {
		return nil, 0, s.gone
	}
	now := s.stored[0]
	if len(s.stored) > 1 {
		s.stored = s.stored[1:]
	}
	return now, s.revision, nil
}

func (s *storage) ReadAgain()       { s.readAgain++ }
func (s *storage) Reachable() error { return s.gone }
func (s *storage) Servers() string  { return "http://etcd" }

// mirrorOf returns a mirror that has read policies.
func mirrorOf(t *testing.T, held versions) *mirror {
	t.Helper()
	m := newMirror(nil, "validatingadmissionpolicies", &policyapi.ValidatingAdmissionPolicy{})
	replace(t, m, held)
	return m
}

func replace(t *testing.T, m *mirror, held versions) {
	t.Helper()
	var objects []any
	for _, policy := range namedPolicies(held) {
		objects = append(objects, &policy)
	}
	if err := m.Replace(objects, "1"); err != nil {
		t.Fatal(err)
	}
}

func kindOf(m *mirror, inForce versions) *heldKind {
	return &heldKind{
		resource: policyapi.Resource("validatingadmissionpolicies"),
		name:     servedName(stored.Kind{}),
		mirror:   m,
		inForce:  func(name cache.ObjectName) (string, bool) { version, ok := inForce[name]; return version, ok },
	}
}

func TestSnapshotCompare(t *testing.T) {
	a, b := cache.ObjectName{Name: "a"}, cache.ObjectName{Name: "b"}
	type stored = map[string]int64
	tests := []struct {
		name          string
		known         map[cache.ObjectName]bool
		stored        []stored
		held, inForce versions
		wrong         bool
	}{
		{name: "nothing stored", stored: []stored{{}}},
		{name: "in step", stored: []stored{{"a": 7}}, held: versions{a: "7"}, inForce: versions{a: "7"}},
		{name: "a write not heard of", stored: []stored{{"a": 8}}, held: versions{a: "7"}, inForce: versions{a: "7"}, wrong: true},
		{name: "an earlier version", stored: []stored{{"a": 6}}, held: versions{a: "7"}, inForce: versions{a: "7"}, wrong: true},
		{name: "a new one not heard of", stored: []stored{{"a": 7, "b": 8}}, held: versions{a: "7"}, inForce: versions{a: "7"}, wrong: true},
		{name: "a deletion not heard of", stored: []stored{{}}, held: versions{a: "7"}, inForce: versions{a: "7"}, wrong: true},
		{name: "another one", stored: []stored{{"b": 7}}, held: versions{a: "7"}, inForce: versions{a: "7"}, wrong: true},
		{name: "not compiled", stored: []stored{{"a": 7}}, held: versions{a: "7"}, inForce: versions{a: "6"}, wrong: true},
		{name: "not in force", stored: []stored{{"a": 7}}, held: versions{a: "7"}, wrong: true},
		{name: "deleted", known: map[cache.ObjectName]bool{a: true}, stored: []stored{{}}},
		{name: "deleted and in force", known: map[cache.ObjectName]bool{a: true}, stored: []stored{{}}, inForce: versions{a: "4"}, wrong: true},
		{
			name: "written again and again, each in step once", stored: []stored{{"a": 7, "b": 2}, {"a": 1, "b": 9}},
			held: versions{a: "7", b: "9"}, inForce: versions{a: "7", b: "9"},
		},
		{
			name: "keys that no object has", stored: []stored{{"a/b": 7, "..": 8, "%": 9}},
			held:    versions{{Name: "a:b"}: "7", {Name: ":.."}: "8", {Name: ":"}: "9"},
			inForce: versions{{Name: "a:b"}: "7", {Name: ":.."}: "8", {Name: ":"}: "9"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := NewSnapshot(&storage{stored: tc.stored}, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
			s.settling = settlePause
			kind := kindOf(mirrorOf(t, tc.held), tc.inForce)
			kind.known = tc.known
			if err := s.compare(t.Context(), kind); (err != nil) != tc.wrong {
				t.Errorf("got %v, want wrong %t", err, tc.wrong)
			}
		})
	}
	s := NewSnapshot(&storage{stored: []map[string]int64{{}}}, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
	if err := s.compare(t.Context(), kindOf(newMirror(nil, "", nil), nil)); err == nil {
		t.Error("confirmed what has never been read")
	}
}

func TestServedName(t *testing.T) {
	name := servedName(stored.Kind{Namespaced: true})
	for key, want := range map[string]cache.ObjectName{
		"there/a":    {Namespace: "there", Name: "a"},
		"there/a/b":  {Namespace: "there", Name: "a:b"},
		"there/\xff": {Namespace: "there", Name: ":"},
	} {
		if got := name(key); got != want {
			t.Errorf("key %q: got %v, want %v", key, got, want)
		}
	}
}

// TestSnapshotProbe: what was found in force is confirmed without a comparison as
// long as nothing is written and nothing is doubted, and never otherwise.
func TestSnapshotProbe(t *testing.T) {
	a := cache.ObjectName{Name: "a"}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	etcd := &storage{revision: 9, stored: []map[string]int64{{"a": 7}}}
	s := NewSnapshot(etcd, clock)
	s.settling = 0
	kinds := []*heldKind{kindOf(mirrorOf(t, versions{a: "7"}), versions{a: "7"})}
	steps := []struct {
		name   string
		change func()
		want   time.Duration
	}{
		{name: "in step", change: func() {}},
		{name: "nothing written: not compared", change: func() { etcd.stored = []map[string]int64{{"a": 8}} }},
		{name: "doubted", change: func() { etcd.doubts++ }, want: time.Second},
		{name: "gone", change: func() { etcd.gone = errors.New("gone") }, want: 2 * time.Second},
		{name: "back", change: func() { etcd.gone, etcd.stored = nil, []map[string]int64{{"a": 7}} }},
		{name: "written", change: func() { etcd.revision, etcd.stored = 10, []map[string]int64{{"a": 10}} }, want: time.Second},
		{name: "an earlier revision", change: func() { etcd.revision, etcd.stored = 5, []map[string]int64{{"b": 5}} }, want: 2 * time.Second},
	}
	for _, step := range steps {
		clock.SetTime(clock.Now().Add(time.Second))
		step.change()
		s.probe(t.Context(), kinds)
		if age, known := s.Age(clock.Now()); !known || age != step.want {
			t.Errorf("%s: age %s, %t; want %s", step.name, age, known, step.want)
		}
	}
}

// TestSnapshotMends: a difference that lasts makes everything be read again, one
// that changes does not; and what does not help is tried less and less often.
func TestSnapshotMends(t *testing.T) {
	a := cache.ObjectName{Name: "a"}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	etcd := &storage{revision: 9, stored: []map[string]int64{{"a": 7}}}
	s := NewSnapshot(etcd, clock)
	s.settling = 0
	m := mirrorOf(t, versions{a: "6"})
	kinds := []*heldKind{kindOf(m, versions{a: "7"})}
	probe := func() {
		t.Helper()
		s.probe(t.Context(), kinds)
		clock.SetTime(clock.Now().Add(time.Second))
	}
	want := func(times int) {
		t.Helper()
		if etcd.readAgain != times {
			t.Fatalf("read again %d times, want %d", etcd.readAgain, times)
		}
		if wish := len(m.again) == 1; wish != (times > 0) {
			t.Errorf("the mirror reads again: %t", wish)
		}
	}
	for i := range 10 { // always behind, and never stuck
		etcd.stored = []map[string]int64{{"a": int64(10 + i)}}
		probe()
	}
	want(0)
	probe()
	etcd.gone = errors.New("gone")
	for range 10 { // nobody knows
		probe()
	}
	etcd.gone = nil
	probe()
	want(0)
	for _, heard := range []string{"1", "5", "9"} { // what is on its way is not stuck
		if err := m.Bookmark(heard); err != nil {
			t.Fatal(err)
		}
		probe()
	}
	want(0)
	if err := m.Bookmark("10"); err != nil { // past that
		t.Fatal(err)
	}
	probe()
	probe()
	want(0)
	probe()
	want(1)
	for range 100 {
		probe()
	}
	if got := etcd.readAgain; got < 5 || got > 8 {
		t.Errorf("read again %d times in 100 s, want longer and longer rests", got)
	}
	replace(t, m, versions{a: "7"})
	etcd.stored = []map[string]int64{{"a": 7}}
	probe()
	if age, known := s.Age(clock.Now()); !known || age != time.Second {
		t.Errorf("age %s, %t after all is in step", age, known)
	}
	if s.rest != 0 {
		t.Error("the next difference is not mended at once")
	}
}

func TestSnapshotAge(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewSnapshot(&storage{}, clocktesting.NewFakePassiveClock(now))
	if age, known := s.Age(now); known {
		t.Errorf("got age %s of what was never confirmed", age)
	}
	confirmed := now.Add(-time.Minute)
	s.confirmed.Store(&confirmed)
	if age, known := s.Age(now); !known || age != time.Minute {
		t.Errorf("got age %s, %t; want a minute", age, known)
	}
	if age, known := s.Age(now.Add(-time.Hour)); !known || age != 0 {
		t.Errorf("got age %s, %t before the confirmation; want none", age, known)
	}
}
