// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"
)

// history notices when etcd goes back to an earlier revision: it was wiped, or
// restored from a copy. A watch would then wait in silence until the old revision
// is reached again, while policies that are gone stay in force and new ones do
// not come into force.
type history struct {
	mu       sync.Mutex
	epoch    int           // how often it has gone back
	latest   int64         // the highest revision that was seen in this epoch
	goneBack chan struct{} // closed at the end of the epoch
}

// mark is a point in the history.
type mark struct {
	epoch    int
	revision int64
}

func newHistory() *history { return &history{goneBack: make(chan struct{})} }

// mark returns where the history is.
func (h *history) mark() mark {
	h.mu.Lock()
	defer h.mu.Unlock()
	return mark{epoch: h.epoch, revision: h.latest}
}

// note takes the revision of an answer to a call that began at mark. Reads and
// writes of etcd are linearizable: an answer is never older than what was seen
// before the call.
func (h *history) note(ctx context.Context, began mark, revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case revision == 0 || began.epoch != h.epoch:
	case revision < began.revision:
		klog.FromContext(ctx).Error(nil, "etcd has gone back: it was wiped, or restored from a copy. All policies are read again",
			"revision", revision, "before", began.revision)
		h.epoch++
		h.latest = revision
		close(h.goneBack)
		h.goneBack = make(chan struct{})
	default:
		h.latest = max(h.latest, revision)
	}
}

// ended is closed when the history has gone back.
func (h *history) ended() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.goneBack
}

// historyWatcher ends all watches when the history has gone back, as if their
// revision had been compacted. Whoever watches then reads everything again.
type historyWatcher struct {
	clientv3.Watcher
	history *history
}

func (w historyWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	ended := w.history.ended()
	ctx, cancel := context.WithCancel(ctx)
	from := w.Watcher.Watch(ctx, key, opts...)
	to := make(chan clientv3.WatchResponse)
	go func() {
		defer cancel()
		defer close(to)
		forwardUntil(ctx, ended, from, to)
	}()
	return to
}

func forwardUntil(ctx context.Context, ended <-chan struct{}, from clientv3.WatchChan, to chan<- clientv3.WatchResponse) {
	for {
		var response clientv3.WatchResponse
		var open bool
		select {
		case response, open = <-from:
			if !open {
				return
			}
		case <-ended:
			response = clientv3.WatchResponse{Canceled: true, CompactRevision: 1}
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
