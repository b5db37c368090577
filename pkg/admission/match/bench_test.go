// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// items returns policies of which the first few match a request for a pod. The
// others are for many resources, each for one.
func items(matching, all int) []match.Item[int] {
	items := make([]match.Item[int], 0, all)
	for i := range matching {
		pattern := []string{"pods", "*", "*/*", "pods/*"}[i%4]
		items = append(items, match.Item[int]{Name: fmt.Sprint("match-", i), Value: i, Criteria: match.Compile(resources("", "v1", pattern))})
	}
	for i := matching; i < all; i++ {
		other := resources(fmt.Sprint("group-", i%50), "v1", fmt.Sprint("resource-", i%500))
		items = append(items, match.Item[int]{Name: fmt.Sprint("other-", i), Value: i, Criteria: match.Compile(other)})
	}
	return items
}

func installed(matching, all int) *match.Index[int] {
	return (*match.Index[int])(nil).Edit(nil, items(matching, all))
}

func BenchmarkCandidates(b *testing.B) {
	for _, all := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("10of%d", all), func(b *testing.B) {
			w, ix := newWorld(), installed(10, all)
			req, buf := request.New(create("", "v1", "pods", "Pod", "prod")), make([]int, 0, 10)
			b.ReportAllocs()
			for b.Loop() {
				if got := ix.Candidates(match.NewSubject(req, w), buf); len(got) != 10 {
					b.Fatalf("got %d candidates", len(got))
				}
			}
		})
	}
}

func BenchmarkMatches(b *testing.B) {
	for name, criteria := range map[string]*match.Criteria{
		"rules": match.Compile(resources("", "v1", "pods")),
		"selectors": match.Compile(resources("", "v1", "pods", func(r *admissionregistrationv1.MatchResources) {
			r.NamespaceSelector = selecting("env", "prod")
			r.ObjectSelector = selecting("app", "web")
		})),
	} {
		b.Run(name, func(b *testing.B) {
			w, fields := newWorld(), create("", "v1", "pods", "Pod", "prod")
			fields.Object.SetLabels(map[string]string{"app": "web"})
			subject := match.NewSubject(request.New(fields), w) // one for all policies
			b.ReportAllocs()
			for b.Loop() {
				if _, matched, err := criteria.Matches(b.Context(), subject); !matched || err != nil {
					b.Fatal(matched, err)
				}
			}
		})
	}
}

func BenchmarkEdit(b *testing.B) {
	b.Run("10000intoNone", func(b *testing.B) {
		add := items(10, 10_000)
		b.ReportAllocs()
		for b.Loop() {
			(*match.Index[int])(nil).Edit(nil, add)
		}
	})
	b.Run("10000ofOneResource", func(b *testing.B) {
		add := items(10_000, 10_000)
		b.ReportAllocs()
		for b.Loop() {
			(*match.Index[int])(nil).Edit(nil, add)
		}
	})
	for name, all := range map[string]int{"1into10": 10, "1into10000": 10_000} {
		b.Run(name, func(b *testing.B) {
			ix, add := installed(10, all), items(1, 1)
			b.ReportAllocs()
			for b.Loop() {
				ix.Edit(nil, add)
			}
		})
	}
	b.Run("1into10000ofOneResource", func(b *testing.B) {
		ix, add := installed(10_000, 10_000), items(1, 1)
		b.ReportAllocs()
		for b.Loop() {
			ix.Edit(nil, add)
		}
	})
}
