// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

func TestServedStorageExplains(t *testing.T) {
	resource := schema.GroupResource{Resource: "policies"}
	gone := &unansweredError{reason: "connection refused"}
	const want = "the storage (etcd at http://a, http://b) does not answer: "
	tests := []struct {
		name    string
		err     error
		failure *unansweredError
		gone    bool // the caller has not waited
		want    string
	}{
		{name: "nothing"},
		{name: "an answer", err: storage.NewKeyNotFoundError("k", 1), failure: gone, want: storage.NewKeyNotFoundError("k", 1).Error()},
		{name: "of the caller", err: context.Canceled, failure: gone, want: "context canceled"},
		{name: "an unanswered call", err: gone, want: want + "connection refused; advice"},
		{name: "an unanswered list", err: context.DeadlineExceeded, want: want + "no answer within 2.5s; advice"},
		{name: "a list that its caller left", err: context.DeadlineExceeded, gone: true, want: "context deadline exceeded"},
		{name: "a list that its caller left without etcd", err: context.DeadlineExceeded, failure: gone, gone: true, want: want + "connection refused; advice"},
		{name: "no leader", err: rpctypes.ErrNoLeader, want: want + "etcdserver: no leader; advice"},
		{name: "no space", err: rpctypes.ErrNoSpace, want: "etcdserver: mvcc: database space exceeded"},
		{name: "cache not filled for want of etcd", err: apierrors.NewTooManyRequests("initializing", 1), failure: gone, want: want + "connection refused; advice"},
		{name: "cache not filled yet", err: apierrors.NewTooManyRequests("initializing", 1), want: "initializing"},
		{name: "conflict", err: apierrors.NewConflict(resource, "p", errors.New("changed")), want: `Operation cannot be fulfilled on policies "p": changed`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			conn := &connection{servers: "http://a, http://b"}
			conn.failure.Store(tc.failure)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.gone {
				cancel()
			}
			got := ""
			err := (&servedStorage{connection: conn}).explain(ctx, tc.err, "advice")
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if strings.HasPrefix(tc.want, want) != apierrors.IsServiceUnavailable(err) {
				t.Errorf("%v: reason %q", err, apierrors.ReasonForError(err))
			}
			if seconds, ok := apierrors.SuggestsClientDelay(err); ok && strings.HasPrefix(tc.want, want) {
				t.Errorf("clients are told to wait %d s on their own", seconds)
			}
		})
	}
}
