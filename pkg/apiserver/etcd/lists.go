// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// patientLists ends a streamed list when etcd is silent, however long the whole
// takes, and notes at which revision lists were read. As in boundedCalls, those
// without a deadline may be silent.
type patientLists struct {
	clientv3.KV
	history *history
}

// Get notes the revision. The caller bounds it.
func (l patientLists) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	began := l.history.mark()
	response, err := l.KV.Get(ctx, key, opts...)
	if err == nil && !clientv3.OpGet(key, opts...).IsSerializable() {
		l.history.note(ctx, began, response.Header.Revision)
	}
	return response, err
}

// GetStream streams a list.
func (l patientLists) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	began := l.history.mark()
	_, bounded := ctx.Deadline()
	silence := newSilence(ctx)
	if bounded {
		silence.listen()
	}
	from, err := l.KV.GetStream(silence, key, opts...)
	if err != nil {
		silence.stop()
		return nil, err
	}
	pinned := clientv3.OpGet(key, opts...).Rev() > 0
	to := make(chan clientv3.RangeStreamResponse)
	go func() {
		defer close(to)
		defer silence.stop()
		for response := range from {
			silence.pause()
			switch {
			case response.Err() != nil:
				l.history.doubt()
			case !pinned && response.Header != nil: // the last one
				l.history.note(ctx, began, response.Header.Revision)
			}
			select {
			case to <- response:
			case <-ctx.Done():
				return
			}
			if bounded {
				silence.listen()
			}
		}
	}()
	return to, nil
}

// silence is a context that ends like one whose deadline is exceeded when a
// silence lasts for answerTimeout.
type silence struct {
	context.Context //nolint:containedctx // it is one
	cancel          context.CancelFunc
	timer           *time.Timer
	over            atomic.Bool
}

func newSilence(ctx context.Context) *silence {
	s := &silence{}
	s.Context, s.cancel = context.WithCancel(ctx)
	s.timer = time.AfterFunc(answerTimeout, func() {
		s.over.Store(true)
		s.cancel()
	})
	s.timer.Stop()
	return s
}

func (s *silence) listen() { s.timer.Reset(answerTimeout) }
func (s *silence) pause()  { s.timer.Stop() }

func (s *silence) stop() {
	s.timer.Stop()
	s.cancel()
}

// Err implements context.Context.
func (s *silence) Err() error {
	err := s.Context.Err()
	if err != nil && s.over.Load() {
		return context.DeadlineExceeded
	}
	return err
}
