// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// streams is an etcd that sends a part of a list after each pause, and keeps the
// context it was asked with.
type streams struct {
	clientv3.KV
	pauses []time.Duration
	asked  context.Context
}

func (s *streams) GetStream(ctx context.Context, _ string, _ ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	s.asked = ctx
	parts := make(chan clientv3.RangeStreamResponse)
	go func() {
		defer close(parts)
		for i, pause := range s.pauses {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			part := clientv3.RangeStreamResponse{RangeResponse: &pb.RangeResponse{}}
			if i == len(s.pauses)-1 {
				part.Header = &pb.ResponseHeader{Revision: 100}
			}
			parts <- part
		}
	}()
	return parts, nil
}

// TestListsAreBoundedBySilence: a list may take as long as it likes while it
// makes progress, and its reader, too.
func TestListsAreBoundedBySilence(t *testing.T) {
	const long = answerTimeout - time.Second
	tests := []struct {
		name      string
		pauses    []time.Duration
		reading   time.Duration
		unbounded bool
		want      int
		revision  int64
	}{
		{name: "short", pauses: []time.Duration{0, 0}, want: 2, revision: 100},
		{name: "long", pauses: []time.Duration{long, long, long, long}, want: 4, revision: 100},
		{name: "slowly read", pauses: []time.Duration{long, 0, long}, reading: 2 * answerTimeout, want: 3, revision: 100},
		{name: "silent", pauses: []time.Duration{0, 2 * answerTimeout}, want: 1},
		{name: "silent from the beginning", pauses: []time.Duration{2 * answerTimeout}},
		{name: "the watch cache's", pauses: []time.Duration{0, time.Minute}, unbounded: true, want: 2, revision: 100},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if !tc.unbounded {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Minute)
					defer cancel()
				}
				etcd := &streams{pauses: tc.pauses}
				lists := patientLists{KV: etcd, history: newHistory()}
				parts, err := lists.GetStream(ctx, "key")
				if err != nil {
					t.Fatal(err)
				}
				got := 0
				for range parts {
					got++
					time.Sleep(tc.reading)
				}
				if got != tc.want {
					t.Errorf("got %d parts, want %d", got, tc.want)
				}
				if silent := errors.Is(etcd.asked.Err(), context.DeadlineExceeded); silent != (got < len(tc.pauses)) {
					t.Errorf("the context of the list has ended with %v", etcd.asked.Err())
				}
				if got := lists.history.mark().revision; got != tc.revision {
					t.Errorf("history at %d, want %d", got, tc.revision)
				}
			})
		})
	}
}
