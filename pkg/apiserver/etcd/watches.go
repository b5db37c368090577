// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// historyWatcher ends watches that would miss something, as if their revision had
// been compacted. Whoever watches then reads everything again.
type historyWatcher struct {
	clientv3.Watcher
	history *history
}

// Watch ends when the history has gone back, and at once when that was before: a
// list was then read of one history, and the next watch begins in another.
func (w historyWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	began, ended := w.history.join()
	to := make(chan clientv3.WatchResponse, 1)
	if clientv3.OpGet(key, opts...).Rev() > began.revision+1 {
		to <- compacted()
		close(to)
		return to
	}
	ctx, cancel := context.WithCancel(ctx)
	from := w.Watcher.Watch(ctx, key, opts...)
	go func() {
		defer cancel()
		defer close(to)
		w.forward(ctx, began, ended, from, to)
	}()
	return to
}

// compacted is what etcd answers to a watch of a revision of which it knows
// nothing any more.
func compacted() clientv3.WatchResponse {
	return clientv3.WatchResponse{Canceled: true, CompactRevision: 1}
}

func (w historyWatcher) forward(ctx context.Context, began mark, ended <-chan struct{}, from clientv3.WatchChan, to chan<- clientv3.WatchResponse) {
	for {
		var response clientv3.WatchResponse
		var open bool
		select {
		case response, open = <-from:
		case <-ended:
			response, open = compacted(), true
		}
		switch {
		case !open || response.Canceled:
			w.history.doubt()
		case losesDeletion(response.Events):
			response = compacted()
		default:
			w.history.tell(began, response.Header.GetRevision())
		}
		if !open {
			return
		}
		select {
		case to <- response:
		case <-ctx.Done():
			return
		}
		if response.Canceled {
			return
		}
	}
}

// losesDeletion says whether the store of k8s.io/apiserver could not tell what was
// deleted. It tells that by the value before, and takes an empty one for none;
// the watch cache would drop the event, and hold the object for ever.
func losesDeletion(events []*clientv3.Event) bool {
	for _, event := range events {
		if event.Type == clientv3.EventTypeDelete && (event.PrevKv == nil || len(event.PrevKv.Value) == 0) {
			return true
		}
	}
	return false
}
