// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"testing"

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
