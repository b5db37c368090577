// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/portcullis-dev/portcullis/test/etcdtest"
)

// TestCompactorGoesOn compacts an etcd, whatever becomes of it.
func TestCompactorGoesOn(t *testing.T) {
	cluster := etcdtest.New(t, 1, nil)
	empty := cluster.Copy(t)
	cluster.Start(t)
	connection, err := newConnection(storagebackend.TransportConfig{ServerList: cluster.Endpoints()}, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.close)
	direct := cluster.Client(t)
	wantCompaction(t, connection, direct)
	cluster.Stop()
	used := cluster.Copy(t)
	cluster.Start(t)
	wantCompaction(t, connection, direct)

	for _, test := range []struct {
		name   string
		change func(*testing.T)
	}{
		{name: "the key deleted", change: func(t *testing.T) {
			t.Helper()
			if _, err := direct.Delete(t.Context(), compactRevisionKey); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "the key damaged", change: func(t *testing.T) {
			t.Helper()
			if _, err := direct.Put(t.Context(), compactRevisionKey, "soon"); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "restored", change: func(t *testing.T) { t.Helper(); replaceData(t, cluster, used) }},
		{name: "wiped", change: func(t *testing.T) { t.Helper(); replaceData(t, cluster, empty) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.change(t)
			wantCompaction(t, connection, direct)
		})
	}
}

func replaceData(t *testing.T, cluster *etcdtest.Cluster, restore func(testing.TB)) {
	t.Helper()
	cluster.Stop()
	restore(t)
	cluster.Start(t)
}

// wantCompaction waits until a revision that is written now cannot be read any
// more.
func wantCompaction(t *testing.T, connection *connection, direct *clientv3.Client) {
	t.Helper()
	written, err := direct.Put(t.Context(), "key", "value")
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, err := direct.Get(t.Context(), "key", clientv3.WithRev(written.Header.Revision-1))
		if err != nil && connection.compactor.CompactRevision() >= written.Header.Revision {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("the test is over")
		}
		if _, err := direct.Put(t.Context(), "key", "value"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoCompactor(t *testing.T) {
	c := newCompactor(nil, newHistory(), 0)
	c.start()
	c.Stop()
	if got := c.CompactRevision(); got != 0 {
		t.Errorf("compacted %d", got)
	}
}
