// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

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
