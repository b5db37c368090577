// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/klog/v2"
)

const (
	// compactRevisionKey is where all who compact an etcd as kube-apiserver does
	// agree on whose turn it is. Its value is the revision that was compacted last.
	compactRevisionKey = "compact_rev_key"
	// compactTimeout bounds one turn.
	compactTimeout = 30 * time.Second
)

// compactor removes the history of etcd that is older than an interval. It takes
// turns with those of etcd3.NewCompactor on the same etcd, and does as they do:
// at each interval, who finds the version of the key unchanged since the last
// one changes it and compacts the revision that etcd had then. Unlike them, it
// goes on when the key is gone, with an etcd that was wiped, say: etcd3.Compact
// panics then.
type compactor struct {
	client   *clientv3.Client
	history  *history
	interval time.Duration
	revision atomic.Int64

	stop context.CancelFunc
	done chan struct{}

	// Of the loop alone: what was seen at the last turn.
	epoch   int
	version int64 // of the key
	latest  int64 // revision of etcd
}

var _ etcd3.Compactor = &compactor{}

func newCompactor(client *clientv3.Client, history *history, interval time.Duration) *compactor {
	return &compactor{client: client, history: history, interval: interval, stop: func() {}, done: make(chan struct{})}
}

// start compacts until Stop. An interval of 0 leaves it to others.
func (c *compactor) start() {
	if c.interval == 0 {
		close(c.done)
		return
	}
	ctx, cancel := context.WithCancel(c.client.Ctx())
	c.stop = cancel
	go c.run(ctx)
}

// Stop returns when nothing is done any more.
func (c *compactor) Stop() {
	c.stop()
	<-c.done
}

// CompactRevision implements etcd3.Compactor.
func (c *compactor) CompactRevision() int64 { return c.revision.Load() }

func (c *compactor) run(ctx context.Context) {
	defer close(c.done)
	ticker := time.NewTicker(c.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := c.turn(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The history of etcd cannot be compacted; it is tried again", "after", c.interval)
		}
	}
}

func (c *compactor) turn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, compactTimeout)
	defer cancel()
	if epoch := c.history.mark().epoch; epoch != c.epoch {
		c.epoch, c.version, c.latest = epoch, 0, 0
	}
	answer, err := c.client.Txn(ctx).
		If(clientv3.Compare(clientv3.Version(compactRevisionKey), "=", c.version)).
		Then(clientv3.OpPut(compactRevisionKey, strconv.FormatInt(c.latest, 10))).
		Else(clientv3.OpGet(compactRevisionKey)).
		Commit()
	if err != nil {
		return err
	}
	old := c.latest
	c.latest = answer.Header.Revision
	if !answer.Succeeded {
		c.follow(answer)
		return nil
	}
	c.version++
	if old == 0 || old >= c.latest {
		return nil // nothing is known to be old enough
	}
	if _, err := c.client.Compact(ctx, old); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	c.revision.Store(old)
	return nil
}

// follow learns from the key that another one has taken the turn, or that it is
// gone.
func (c *compactor) follow(answer *clientv3.TxnResponse) {
	c.version = 0
	for _, response := range answer.Responses {
		for _, kv := range response.GetResponseRange().GetKvs() {
			c.version = kv.Version
			if revision, err := strconv.ParseInt(string(kv.Value), 10, 64); err == nil {
				c.revision.Store(revision)
			}
		}
	}
}
