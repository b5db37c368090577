// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

func namedPolicies(versions versions) []policyapi.ValidatingAdmissionPolicy {
	var policies []policyapi.ValidatingAdmissionPolicy
	for name, version := range versions {
		policies = append(policies, policyapi.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name.Name, ResourceVersion: version}})
	}
	return policies
}

// storage holds policies.
type storage struct {
	Storage
	etcd, cache versions // without and with a revision
	gone        error
}

func (s *storage) List(_ context.Context, resource schema.GroupResource, revision int64, out runtime.Object) error {
	list, ok := out.(*policyapi.ValidatingAdmissionPolicyList)
	if !ok || resource != policyapi.Resource("validatingadmissionpolicies") {
		return fmt.Errorf("unexpected list of %s into %T", resource, out)
	}
	list.Items = namedPolicies(s.etcd)
	if revision > 0 {
		list.Items = namedPolicies(s.cache)
	}
	return nil
}

func (s *storage) Reachable() error { return s.gone }

// mirrorOf returns a mirror that has read policies.
func mirrorOf(t *testing.T, held versions, revision string) *mirror {
	t.Helper()
	m := newMirror(nil, "validatingadmissionpolicies", &policyapi.ValidatingAdmissionPolicy{})
	var objects []any
	for _, policy := range namedPolicies(held) {
		objects = append(objects, &policy)
	}
	if err := m.Replace(objects, revision); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSnapshotInForce(t *testing.T) {
	a, b := cache.ObjectName{Name: "a"}, cache.ObjectName{Name: "b"}
	confirmed := point{revision: 5}
	tests := []struct {
		name           string
		last, now      point
		before         versions
		etcd, cache    versions
		held, inForce  versions
		heard          string
		notRead, wrong bool
	}{
		{name: "nothing stored", now: point{revision: 1}},
		{name: "in step", now: point{revision: 9}, cache: versions{a: "7"}, held: versions{a: "7"}, inForce: versions{a: "7"}},
		{name: "not read", now: point{revision: 9}, notRead: true, wrong: true},
		{name: "a write not heard of", last: confirmed, now: point{revision: 9}, cache: versions{a: "8"}, held: versions{a: "7"}, inForce: versions{a: "7"}, heard: "7", wrong: true},
		{name: "a new one not heard of", now: point{revision: 9}, cache: versions{a: "7", b: "8"}, held: versions{a: "7"}, inForce: versions{a: "7"}, wrong: true},
		{name: "a deletion not heard of", now: point{revision: 9}, held: versions{a: "7"}, inForce: versions{a: "7"}, wrong: true},
		{name: "heard of later ones", last: confirmed, now: point{revision: 9}, held: versions{a: "12"}, inForce: versions{a: "12"}, heard: "12"},
		{name: "not compiled", now: point{revision: 9}, cache: versions{a: "7"}, held: versions{a: "7"}, inForce: versions{a: "6"}, wrong: true},
		{name: "changed since", last: confirmed, now: point{revision: 9}, held: versions{a: "8"}, inForce: versions{a: "12"}, heard: "9"},
		{name: "not in force", now: point{revision: 9}, cache: versions{a: "7"}, held: versions{a: "7"}, wrong: true},
		{name: "deleted", last: confirmed, now: point{revision: 9}, before: versions{a: "4"}},
		{name: "deleted and in force", last: confirmed, now: point{revision: 9}, before: versions{a: "4"}, inForce: versions{a: "4"}, wrong: true},
		{
			name: "gone back and not read again", last: confirmed, now: point{epoch: 1, revision: 3},
			etcd: versions{b: "2"}, cache: versions{a: "4"}, held: versions{a: "4"}, inForce: versions{a: "4"}, heard: "5", wrong: true,
		},
		{
			name: "gone back and read again", last: confirmed, now: point{epoch: 1, revision: 3}, before: versions{a: "4"},
			etcd: versions{b: "2"}, held: versions{b: "2"}, inForce: versions{b: "2"}, heard: "3",
		},
	}
	resource := policyapi.Resource("validatingadmissionpolicies")
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			mirror := mirrorOf(t, tc.held, cmp.Or(tc.heard, "1"))
			if tc.notRead {
				mirror = newMirror(nil, "", nil)
			}
			s := NewSnapshot(&storage{etcd: tc.etcd, cache: tc.cache}, clock.RealClock{})
			s.last = tc.last
			kind := heldKind{
				resource: resource, newList: func() runtime.Object { return &policyapi.ValidatingAdmissionPolicyList{} },
				mirror:  mirror,
				inForce: func(name cache.ObjectName) (string, bool) { version, ok := tc.inForce[name]; return version, ok },
			}
			got, err := s.inForce(t.Context(), kind, tc.now, tc.before)
			if (err != nil) != tc.wrong {
				t.Errorf("got %v, want wrong %t", err, tc.wrong)
			}
			if err == nil && len(got) != len(tc.held) {
				t.Errorf("got %v, want %v", got, tc.held)
			}
		})
	}
}

func TestSnapshotAge(t *testing.T) {
	s := NewSnapshot(&storage{}, clock.RealClock{})
	now := time.Unix(1000, 0)
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
