// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/warning"
)

// upstreamWarnings returns what a client gets to see of warnings from an API
// server.
func upstreamWarnings(t *testing.T, warnings []string) []string {
	t.Helper()
	handler := filters.WithWarningRecorder(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for _, text := range warnings {
			warning.AddWarning(r.Context(), "", text)
		}
	}))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	headers, errs := net.ParseWarningHeaders(w.Header().Values("Warning"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	texts := make([]string, 0, len(headers))
	for _, header := range headers {
		texts = append(texts, header.Text)
	}
	return texts
}

func compareWarnings(t *testing.T, f *fixture, warnings []string) {
	t.Helper()
	f.answer.Warnings = warnings
	got, want := f.ask(t, asking).Warnings, upstreamWarnings(t, warnings)
	if !slices.Equal(got, want) {
		t.Errorf("of warnings with lengths %v: got %d with lengths %v, want %d with lengths %v",
			lengths(warnings), len(got), lengths(got), len(want), lengths(want))
	}
}

func lengths(texts []string) []int {
	all := make([]int, len(texts))
	for i, text := range texts {
		all[i] = len([]rune(text))
	}
	return all
}

// numbered returns n distinct texts of a length.
func numbered(n, length int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = string(rune('a'+i)) + strings.Repeat("x", length-1)
	}
	return texts
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		name     string
		warnings []string
		want     int
	}{
		{name: "none"},
		{name: "empty and equal ones", warnings: []string{"a", "", "b", "a"}, want: 2},
		{name: "characters that a header cannot carry", warnings: []string{"a\nb", "a\x00", "\xff", "c"}, want: 1},
		{name: "quotes, backslashes and other scripts", warnings: []string{`"a" \ b`, "політика", "政策"}, want: 3},
		{name: "exactly full", warnings: numbered(16, 256), want: 16},
		{name: "one more than full", warnings: append(numbered(16, 256), "last"), want: 17},
		{name: "two more than full", warnings: append(numbered(16, 256), "last", "very last"), want: 17},
		{name: "one that is too long alone", warnings: numbered(1, 4097), want: 1},
		{name: "many long ones", warnings: numbered(26, 1000), want: 16},
		{name: "unsendable until it is cut", warnings: append([]string{strings.Repeat("y", 256) + "\n"}, numbered(3, 2000)...), want: 4},
	}
	f := newFixture(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			compareWarnings(t, f, test.warnings)
			if got := len(f.ask(t, asking).Warnings); got != test.want {
				t.Errorf("got %d warnings, want %d", got, test.want)
			}
		})
	}
}

// TestWarningsAreThoseOfUpstream compares with the recorder itself.
func TestWarningsAreThoseOfUpstream(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	sizes := []int{0, 1, 2, 100, 255, 256, 257, 300, 512, 1024, 2048, 4095, 4096, 4097, 5000}
	fill := []string{"x", "é", "政", "\"", "\\", " "}
	spoil := []string{"\n", "\x7f", "\xff", "\u0085"}
	f := newFixture(t)
	for range 1500 {
		same := 0 // the size of all, in a part of the rounds
		if random.IntN(4) == 0 {
			same = sizes[random.IntN(len(sizes))]
		}
		warnings := make([]string, random.IntN(40))
		for i := range warnings {
			size := same
			if size == 0 {
				size = sizes[random.IntN(len(sizes))]
			}
			text := strings.Repeat(fill[random.IntN(len(fill))], size)
			if size > 0 && random.IntN(4) > 0 { // tell it from others of its size
				text = string(rune('A'+i)) + strings.Repeat("x", size-1)
			}
			if random.IntN(20) == 0 {
				text += spoil[random.IntN(len(spoil))]
			}
			warnings[i] = text
		}
		compareWarnings(t, f, warnings)
		if t.Failed() {
			return
		}
	}
}
