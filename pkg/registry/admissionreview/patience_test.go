// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

const hurriedPath = "/reviews"

// hurriedServer tells what reading the body led to, and answers once it may.
func hurriedServer(t *testing.T, http2 bool, timeout time.Duration, read chan<- error, answer <-chan struct{}) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(withBodyTimeout(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
		select {
		case <-answer:
			w.WriteHeader(http.StatusNoContent)
		case <-r.Context().Done():
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}), timeout, hurriedPath))
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func post(t *testing.T, server *httptest.Server, path string, body io.Reader) int {
	t.Helper()
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(post)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// TestBodyTimeout: a body that does not come ends the reading of it, and the
// caller is answered or cut off, over both versions of HTTP.
func TestBodyTimeout(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/2 %v", http2), func(t *testing.T) {
			read, answer := make(chan error, 1), make(chan struct{})
			close(answer)
			server := hurriedServer(t, http2, 50*time.Millisecond, read, answer)
			body, never := io.Pipe()
			defer never.Close()
			post(t, server, hurriedPath, body) // returns, though the body never ends
			if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got error %v, want an exceeded deadline", err)
			}
			// Others are served, and what is no review is not hurried.
			for _, next := range []string{hurriedPath, "/others"} {
				if code := post(t, server, next, strings.NewReader("x")); code != http.StatusNoContent {
					t.Errorf("%s: got HTTP %d", next, code)
				}
				if err := <-read; err != nil {
					t.Errorf("%s: got error %v", next, err)
				}
			}
		})
	}
}

// TestBodyTimeoutEndsWithTheBody: judging may take longer than sending.
func TestBodyTimeoutEndsWithTheBody(t *testing.T) {
	const timeout = 50 * time.Millisecond
	for _, http2 := range []bool{false, true} {
		read, answer := make(chan error, 1), make(chan struct{})
		server := hurriedServer(t, http2, timeout, read, answer)
		time.AfterFunc(4*timeout, func() { close(answer) })
		if code := post(t, server, hurriedPath, strings.NewReader("x")); code != http.StatusNoContent {
			t.Errorf("HTTP/2 %v: got HTTP %d", http2, code)
		}
		if err := <-read; err != nil {
			t.Errorf("HTTP/2 %v: got error %v", http2, err)
		}
	}
}
