// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview

import (
	"net/http"
	"time"
)

// WithBodyTimeout gives the callers of path 10 s to send a body, and leaves all
// other requests to next as they are. It must stand outside of a filter that
// answers in the place of a handler that is still running: the connection must
// not be touched by a handler whose request is over.
func WithBodyTimeout(next http.Handler, path string) http.Handler {
	return withBodyTimeout(next, path, bodyTimeout)
}

func withBodyTimeout(next http.Handler, path string, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			next.ServeHTTP(w, r)
			return
		}
		connection := http.NewResponseController(w)
		if err := connection.SetReadDeadline(time.Now().Add(timeout)); err == nil {
			defer func() { _ = connection.SetReadDeadline(time.Time{}) }() // the connection may serve other requests
		}
		next.ServeHTTP(w, r)
	})
}
