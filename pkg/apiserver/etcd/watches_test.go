// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// fakeWatcher hands out one channel.
type fakeWatcher struct {
	clientv3.Watcher
	responses chan clientv3.WatchResponse
}

func (f fakeWatcher) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	return f.responses
}

func wantCompacted(t *testing.T, watch clientv3.WatchChan) {
	t.Helper()
	if got, open := <-watch; !open || !errors.Is(got.Err(), rpctypes.ErrCompacted) {
		t.Errorf("got error %v, want that the revision is compacted", got.Err())
	}
	if _, open := <-watch; open {
		t.Error("the watch goes on")
	}
}

func TestWatchEndsWithTheHistory(t *testing.T) {
	h := newHistory()
	from := make(chan clientv3.WatchResponse)
	watcher := historyWatcher{Watcher: fakeWatcher{responses: from}, history: h}
	to := watcher.Watch(t.Context(), "key", clientv3.WithRev(1))
	from <- clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: 100}, Events: []*clientv3.Event{{}}}
	if got := <-to; len(got.Events) != 1 || got.Err() != nil {
		t.Errorf("got %+v, want the event", got)
	}
	if got := h.mark().revision; got != 100 {
		t.Errorf("history at %d after an event of 100", got)
	}
	h.note(t.Context(), h.mark(), 50)
	wantCompacted(t, to)

	// A list of the past was read before the history has gone back.
	wantCompacted(t, watcher.Watch(t.Context(), "key", clientv3.WithRev(101)))
	select {
	case got := <-watcher.Watch(t.Context(), "key", clientv3.WithRev(51)):
		t.Errorf("got %+v of a watch that misses nothing", got)
	default:
	}
}

func TestWatchThatIsCut(t *testing.T) {
	h := newHistory()
	from := make(chan clientv3.WatchResponse)
	to := historyWatcher{Watcher: fakeWatcher{responses: from}, history: h}.Watch(t.Context(), "key")
	close(from)
	if got, open := <-to; open {
		t.Errorf("got %+v after the end", got)
	}
	if h.doubted() == 0 {
		t.Error("nobody doubts after a watch was cut")
	}
}

// TestWatchEndsWhereADeletionIsLost: who watches must read again what it could
// not be told.
func TestWatchEndsWhereADeletionIsLost(t *testing.T) {
	deletion := clientv3.EventTypeDelete
	tests := []struct {
		name  string
		event *clientv3.Event
		lost  bool
	}{
		{name: "put", event: &clientv3.Event{}},
		{name: "put over nothing", event: &clientv3.Event{PrevKv: &mvccpb.KeyValue{}}},
		{name: "deletion", event: &clientv3.Event{Type: deletion, PrevKv: &mvccpb.KeyValue{Value: []byte("{}")}}},
		{name: "deletion of an empty value", event: &clientv3.Event{Type: deletion, PrevKv: &mvccpb.KeyValue{}}, lost: true},
		{name: "deletion of what is compacted", event: &clientv3.Event{Type: deletion}, lost: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			from := make(chan clientv3.WatchResponse, 1)
			to := historyWatcher{Watcher: fakeWatcher{responses: from}, history: newHistory()}.Watch(t.Context(), "key")
			from <- clientv3.WatchResponse{Events: []*clientv3.Event{{}, tc.event}}
			if tc.lost {
				wantCompacted(t, to)
			} else if got := <-to; got.Err() != nil || len(got.Events) != 2 {
				t.Errorf("got %+v, want the events", got)
			}
		})
	}
}
