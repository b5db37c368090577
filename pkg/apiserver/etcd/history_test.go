// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestHistory(t *testing.T) {
	h := newHistory()
	note := func(began mark, revision int64) { h.note(t.Context(), began, revision) }
	first, ended := h.mark(), h.ended()
	note(first, 100)
	overtaken := h.mark()
	note(overtaken, 102)
	note(overtaken, 101) // answered later, asked at the same time
	note(h.mark(), 0)    // an answer without a revision
	if got := h.mark(); got != (mark{revision: 102}) {
		t.Fatalf("history at %+v, want revision 102 of the first epoch", got)
	}
	select {
	case <-ended:
		t.Fatal("the history has ended without reason")
	default:
	}
	before := h.mark()
	note(before, 50)
	note(before, 51) // asked before it was known
	if got := h.mark(); got != (mark{epoch: 1, revision: 50}) {
		t.Errorf("history at %+v, want revision 50 of the second epoch", got)
	}
	select {
	case <-ended:
	default:
		t.Error("the history has gone back unnoticed")
	}
	select {
	case <-h.ended():
		t.Error("the second epoch has ended, too")
	default:
	}
}

// fakeWatcher hands out one channel.
type fakeWatcher struct {
	clientv3.Watcher
	responses chan clientv3.WatchResponse
}

func (f fakeWatcher) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	return f.responses
}

func TestHistoryWatcher(t *testing.T) {
	h := newHistory()
	from := make(chan clientv3.WatchResponse)
	to := historyWatcher{Watcher: fakeWatcher{responses: from}, history: h}.Watch(t.Context(), "key")
	from <- clientv3.WatchResponse{Events: []*clientv3.Event{{}}}
	if got := <-to; len(got.Events) != 1 || got.Err() != nil {
		t.Errorf("got %+v, want the event", got)
	}
	h.note(t.Context(), h.mark(), 100)
	h.note(t.Context(), h.mark(), 50)
	if got, open := <-to; !open || !errors.Is(got.Err(), rpctypes.ErrCompacted) {
		t.Errorf("got error %v, want that the revision is compacted", got.Err())
	}
	if _, open := <-to; open {
		t.Error("the watch goes on")
	}
}
