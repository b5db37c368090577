// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestReasonOf(t *testing.T) {
	refused := `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:2379: connect: connection refused"`
	tests := []struct {
		name      string
		err, last error
		want      string
	}{
		{name: "in time", err: status.Error(codes.Unavailable, refused), want: "Error while dialing: dial tcp 127.0.0.1:2379: connect: connection refused"},
		{
			name: "over", err: context.DeadlineExceeded, last: status.Error(codes.DeadlineExceeded, "latest balancer error: "+refused),
			want: "Error while dialing: dial tcp 127.0.0.1:2379: connect: connection refused",
		},
		{name: "silent", err: context.DeadlineExceeded, last: status.Error(codes.DeadlineExceeded, "context deadline exceeded"), want: "no answer within 2.5s"},
		{name: "no leader", err: rpctypes.ErrNoLeader, last: status.Error(codes.Unavailable, "etcdserver: no leader"), want: "etcdserver: no leader"},
		{
			name: "certificate", err: status.Error(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: x509: certificate signed by unknown authority"`),
			want: "authentication handshake failed: x509: certificate signed by unknown authority",
		},
	}
	for _, tc := range tests {
		if got := reasonOf(tc.err, tc.last); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestCallThatNobodyWaitsFor: the patience of a caller says nothing of etcd.
func TestCallThatNobodyWaitsFor(t *testing.T) {
	silent := func(ctx context.Context) (int64, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	tests := []struct {
		name     string
		patience time.Duration
		want     error
		failure  string
	}{
		{name: "short", patience: time.Second, want: context.DeadlineExceeded},
		{name: "long", patience: time.Minute, want: &unansweredError{}, failure: "no answer within 2.5s"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &connection{history: newHistory()}
				ctx, cancel := context.WithTimeout(t.Context(), tc.patience)
				defer cancel()
				err := c.call(ctx, silent)
				var unanswered *unansweredError
				if errors.As(err, &unanswered) != (tc.failure != "") || (tc.failure == "" && !errors.Is(err, tc.want)) {
					t.Errorf("got %v, want %v", err, tc.want)
				}
				failure := ""
				if stored := c.failure.Load(); stored != nil {
					failure = stored.reason
				}
				if failure != tc.failure {
					t.Errorf("etcd is said to fail: %q, want %q", failure, tc.failure)
				}
				if c.history.doubted() == 0 {
					t.Error("nobody doubts after a call without an answer")
				}
			})
		})
	}
}
