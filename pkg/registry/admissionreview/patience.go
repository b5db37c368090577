// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// bodyTimeout bounds how long a slow caller may hold room for its question.
const bodyTimeout = 10 * time.Second

// WithBodyTimeout gives those who POST to one of paths 10 s to send a body, and
// leaves all other requests to next as they are. It must stand outside of a
// filter that answers in the place of a handler that is still running: the
// connection must not be touched by a handler whose request is over.
func WithBodyTimeout(next http.Handler, paths ...string) http.Handler {
	return withBodyTimeout(next, bodyTimeout, paths...)
}

func withBodyTimeout(next http.Handler, timeout time.Duration, paths ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !slices.Contains(paths, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		connection := http.NewResponseController(w)
		if err := connection.SetReadDeadline(time.Now().Add(timeout)); err != nil {
			next.ServeHTTP(w, r) // the writer knows no deadlines, but the request has one
			return
		}
		body := &hurried{ReadCloser: r.Body, connection: connection}
		defer body.end()
		r = r.WithContext(r.Context())
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// hurried is a body that must be there before a deadline of its connection. The
// deadline is lifted as soon as the body is complete: the connection is also
// watched for a caller who leaves. It stays when the body is not complete, so
// that nobody waits for the rest.
type hurried struct {
	io.ReadCloser
	mu         sync.Mutex
	connection *http.ResponseController // nil when the request is over
}

func (h *hurried) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.connection != nil {
			_ = h.connection.SetReadDeadline(time.Time{})
		}
	}
	return n, err
}

// end keeps those who still read from touching the connection.
func (h *hurried) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.connection = nil
}
