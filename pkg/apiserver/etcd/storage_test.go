// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/portcullis-dev/portcullis/test/etcdtest"
)

// newStorage returns a storage with a connection, as if a kind were open.
func newStorage(t *testing.T, cluster *etcdtest.Cluster) *Storage {
	t.Helper()
	s := NewStorage(storagebackend.Config{Prefix: "/of/test", Transport: storagebackend.TransportConfig{ServerList: cluster.Endpoints()}}, nil)
	connection, err := s.connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.close)
	return s
}

func TestVersions(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	s := newStorage(t, cluster)
	direct := cluster.Client(t)
	const batch, many = 100, versionsPage + 300
	rules := schema.GroupResource{Group: "rules.dev", Resource: "rules"}
	if got, _, err := s.Versions(t.Context(), rules); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v of nothing", got, err)
	}
	for i := 0; i < many; i += batch {
		ops := make([]clientv3.Op, 0, batch)
		for j := i; j < i+batch; j++ {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("/of/test/rules.dev/rules/%d", j), "x"))
		}
		if _, err := direct.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"/of/test/rules.dev/rulesets/other", "/of/test/rules.dev/rules", "/of/test/rules.dev/rules/there/other"} {
		if _, err := direct.Put(t.Context(), key, ""); err != nil {
			t.Fatal(err)
		}
	}
	got, revision, err := s.Versions(t.Context(), rules)
	if want := int64(1 + many/batch + 3); err != nil || len(got) != many+1 || revision != want {
		t.Fatalf("got %d at %d, %v; want %d at %d", len(got), revision, err, many+1, want)
	}
	for i := range many {
		if want := int64(2 + i/batch); got[fmt.Sprint(i)] != want {
			t.Fatalf("%d has version %d, want %d", i, got[fmt.Sprint(i)], want)
		}
	}
	if got["there/other"] == 0 {
		t.Error("an object of a namespace is missing")
	}
}

// TestDoubts: whoever asks learns that it may be another etcd that answers.
func TestDoubts(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	s := newStorage(t, cluster)
	current := func() (doubts, revision int64) {
		t.Helper()
		for t.Context().Err() == nil {
			doubts, revision, err := s.Current(t.Context())
			if err == nil && s.Reachable() == nil {
				return doubts, revision
			}
		}
		return 0, 0
	}
	first, revision := current()
	if again, _ := current(); again != first {
		t.Errorf("doubted %d times, then %d, without reason", first, again)
	}
	for range 5 {
		cluster.Cut()
		cluster.Heal(t)
		doubts, now := current()
		if doubts == first || now != revision {
			t.Errorf("doubted %d times at %d, then %d at %d, on another connection", first, revision, doubts, now)
		}
		first = doubts
	}
	s.ReadAgain()
	if doubts, _ := current(); doubts == first {
		t.Error("what is to be read again is not doubted")
	}
}

// TestNothingIsStored: a storage without kinds has no connection.
func TestNothingIsStored(t *testing.T) {
	s := NewStorage(storagebackend.Config{}, nil)
	if _, revision, err := s.Current(t.Context()); err == nil {
		t.Errorf("got revision %d of nothing", revision)
	}
	if versions, _, err := s.Versions(t.Context(), schema.GroupResource{}); err == nil {
		t.Errorf("got %v of nothing", versions)
	}
	if err := s.Reachable(); err != nil {
		t.Errorf("got %v before etcd was asked", err)
	}
	s.ReadAgain()
}
