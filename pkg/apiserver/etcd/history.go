// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"sync"

	"google.golang.org/grpc/stats"
	"k8s.io/klog/v2"
)

// history is what is known of the order of revisions. It notices when etcd goes
// back to an earlier one: it was wiped, or restored from a copy. A watch would
// then wait in silence until the old revision is reached again, while policies
// that are gone stay in force and new ones do not come into force.
//
// It cannot notice that an etcd which went back has overtaken the old revision
// before it was asked. So it also counts the reasons to doubt: whoever must know
// compares what is held with what is stored after each.
type history struct {
	mu     sync.Mutex
	epoch  int           // how often it has gone back
	latest int64         // the highest revision that was seen in this epoch
	ended  chan struct{} // closed at the end of the epoch
	doubts int64
}

// mark is a point in the history.
type mark struct {
	epoch    int
	revision int64
}

func newHistory() *history { return &history{ended: make(chan struct{})} }

// mark returns where the history is.
func (h *history) mark() mark {
	now, _ := h.join()
	return now
}

// join returns where the history is, and a channel that is closed when it has
// gone back behind that.
func (h *history) join() (now mark, ended <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return mark{epoch: h.epoch, revision: h.latest}, h.ended
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
		h.latest = revision
		h.endLocked()
	default:
		h.latest = max(h.latest, revision)
	}
}

// tell takes a revision that a watch which began at mark has told of. It may come
// late.
func (h *history) tell(began mark, revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if began.epoch == h.epoch {
		h.latest = max(h.latest, revision)
	}
}

// end ends the epoch: all watches end.
func (h *history) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endLocked()
}

func (h *history) endLocked() {
	h.epoch++
	h.doubts++
	close(h.ended)
	h.ended = make(chan struct{})
}

// doubt counts a reason to doubt that who answers now is who answered before.
func (h *history) doubt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doubts++
}

// doubted returns the number of reasons to doubt.
func (h *history) doubted() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.doubts
}

// connectionDoubts doubts at each new connection to etcd: another one, or one with
// other data, may stand behind it. It implements stats.Handler.
type connectionDoubts struct{ history *history }

// TagRPC implements stats.Handler.
func (connectionDoubts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (connectionDoubts) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn implements stats.Handler.
func (connectionDoubts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

// HandleConn implements stats.Handler.
func (d connectionDoubts) HandleConn(context.Context, stats.ConnStats) { d.history.doubt() }
