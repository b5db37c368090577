// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
		want    string
	}{
		{name: "nothing"},
		{name: "an answer", err: storage.NewKeyNotFoundError("k", 1), failure: gone, want: storage.NewKeyNotFoundError("k", 1).Error()},
		{name: "of the caller", err: context.Canceled, failure: gone, want: "context canceled"},
		{name: "an unanswered call", err: gone, want: want + "connection refused; advice"},
		{name: "an unanswered list", err: context.DeadlineExceeded, want: want + "no answer within 2.5s; advice"},
		{name: "no leader", err: rpctypes.ErrNoLeader, want: want + "etcdserver: no leader; advice"},
		{name: "no space", err: rpctypes.ErrNoSpace, want: "etcdserver: mvcc: database space exceeded"},
		{name: "cache not filled for want of etcd", err: apierrors.NewTooManyRequests("initializing", 1), failure: gone, want: want + "connection refused; advice"},
		{name: "cache not filled yet", err: apierrors.NewTooManyRequests("initializing", 1), want: "initializing"},
		{name: "conflict", err: apierrors.NewConflict(resource, "p", errors.New("changed")), want: `Operation cannot be fulfilled on policies "p": changed`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			connection := &etcdConnection{servers: "http://a, http://b"}
			connection.failure.Store(tc.failure)
			got := ""
			err := (&servedStorage{connection: connection}).explain(tc.err, "advice")
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

func TestHistory(t *testing.T) {
	h := newHistory()
	note := func(began historyMark, revision int64) { h.note(t.Context(), began, revision) }
	first, ended := h.mark(), h.ended()
	note(first, 100)
	overtaken := h.mark()
	note(overtaken, 102)
	note(overtaken, 101) // answered later, asked at the same time
	note(h.mark(), 0)    // an answer without a revision
	if got := h.mark(); got != (historyMark{revision: 102}) {
		t.Fatalf("history at %+v, want revision 102 of the first epoch", got)
	}
	select {
	case <-ended:
		t.Fatal("the history has ended without reason")
	default:
	}
	before := h.mark()
	note(before, 50)
	note(before, 51) // asked before it was known
	if got := h.mark(); got != (historyMark{epoch: 1, revision: 50}) {
		t.Errorf("history at %+v, want revision 50 of the second epoch", got)
	}
	select {
	case <-ended:
	default:
		t.Error("the history has gone back unnoticed")
	}
	select {
	case <-h.ended():
		t.Error("the second epoch has ended, too")
	default:
	}
}

// fakeWatcher hands out one channel.
type fakeWatcher struct {
	clientv3.Watcher
	responses chan clientv3.WatchResponse
}

func (f fakeWatcher) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	return f.responses
}

func TestHistoryWatcher(t *testing.T) {
	h := newHistory()
	from := make(chan clientv3.WatchResponse)
	to := historyWatcher{Watcher: fakeWatcher{responses: from}, history: h}.Watch(t.Context(), "key")
	from <- clientv3.WatchResponse{Events: []*clientv3.Event{{}}}
	if got := <-to; len(got.Events) != 1 || got.Err() != nil {
		t.Errorf("got %+v, want the event", got)
	}
	h.note(t.Context(), h.mark(), 100)
	h.note(t.Context(), h.mark(), 50)
	if got, open := <-to; !open || !errors.Is(got.Err(), rpctypes.ErrCompacted) {
		t.Errorf("got error %v, want that the revision is compacted", got.Err())
	}
	if _, open := <-to; open {
		t.Error("the watch goes on")
	}
}

// answers is a transport that answers with one code after the other.
type answers []int

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	code := (*a)[0]
	*a = (*a)[1:]
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(""))}, nil
}

func TestPatientTransport(t *testing.T) {
	tests := []struct {
		name, method string
		answers      answers
		want         int
		left         int
	}{
		{name: "answered", method: http.MethodGet, answers: answers{200}, want: 200},
		{name: "answered at last", method: http.MethodGet, answers: answers{503, 429, 200}, want: 200},
		{name: "gone", method: http.MethodGet, answers: answers{410, 200}, want: 410, left: 1},
		{name: "too large a version", method: http.MethodGet, answers: answers{504, 200}, want: 504, left: 1},
		{name: "a write", method: http.MethodPost, answers: answers{503, 200}, want: 503, left: 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), tc.method, "https://localhost/", nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := patientTransport{&tc.answers}.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			got.Body.Close()
			if got.StatusCode != tc.want || len(tc.answers) != tc.left {
				t.Errorf("got %d with %d answers left, want %d with %d", got.StatusCode, len(tc.answers), tc.want, tc.left)
			}
		})
	}
}

func TestPatientTransportEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://localhost/", nil)
	if err != nil {
		t.Fatal(err)
	}
	always := answers{429}
	got, err := patientTransport{&always}.RoundTrip(request)
	if err != nil || got.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("got %v, %v; want the last answer", got, err)
	}
	got.Body.Close()
}
