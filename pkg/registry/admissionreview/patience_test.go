// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// TestBodyTimeout: a body that does not come ends the reading of it, over both
// versions of HTTP, and on the path of reviews only.
func TestBodyTimeout(t *testing.T) {
	const path = "/reviews"
	for _, http2 := range []bool{false, true} {
		read := make(chan error, 1)
		server := httptest.NewUnstartedServer(withBodyTimeout(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
			w.WriteHeader(http.StatusNoContent)
		}), path, 50*time.Millisecond))
		server.EnableHTTP2 = http2
		server.StartTLS()
		defer server.Close()

		body, never := io.Pipe()
		post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := server.Client().Do(post); err == nil {
			answer.Body.Close()
		}
		if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("HTTP/2 %v: got error %v, want an exceeded deadline", http2, err)
		}
		never.Close()

		// The connection serves on, and what is no review is not hurried.
		for _, next := range []string{path, "/others"} {
			post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+next, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := server.Client().Do(post)
			if err != nil {
				t.Fatalf("HTTP/2 %v: %v", http2, err)
			}
			answer.Body.Close()
			if err := <-read; err != nil {
				t.Errorf("HTTP/2 %v: %s: got error %v", http2, next, err)
			}
		}
	}
}
