// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// TestSharedSubject asks many criteria about one subject, whose memory must not
// change what any of them answers. Some of them share their selectors.
func TestSharedSubject(t *testing.T) {
	w := newWorld()
	u := newUpstream(w)
	var interner match.Interner
	for seed := range uint64(200) {
		g := fromSeed(seed)
		req := g.request()
		subject := match.NewSubject(req, w)
		for range 20 {
			resources := g.resources()
			want := u.match(req, resources)
			criteria := match.Compile(resources)
			if got := newOutcome(criteria.Matches(t.Context(), subject)); got != want {
				t.Fatalf("seed %d: %s\ngot:      %+v\nupstream: %+v", seed, describe(req, resources), got, want)
			}
			if got := newOutcome(interner.Criteria(criteria).Matches(t.Context(), subject)); got != want {
				t.Fatalf("seed %d: %s\ninterned: %+v\nupstream: %+v", seed, describe(req, resources), got, want)
			}
		}
	}
}

// asked counts what a view is asked.
type asked struct {
	*world
	namespaces, equivalents int
}

func (a *asked) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	a.namespaces++
	return a.world.Namespace(ctx, name)
}

func (a *asked) Equivalents(resource schema.GroupVersionResource, subresource string) []cluster.Equivalent {
	a.equivalents++
	return a.world.Equivalents(resource, subresource)
}

// TestSubjectAsksOnce: whatever the number of policies, the cluster is asked once,
// for what is not there too.
func TestSubjectAsksOnce(t *testing.T) {
	for _, namespace := range []string{"prod", "missing", brokenNamespace} {
		view := &asked{world: newWorld()}
		subject := match.NewSubject(request.New(create("", "v1", "pods", "Pod", namespace)), view)
		for i := range 100 {
			criteria := match.Compile(resources("", "v2", "pods", func(r *admissionregistrationv1.MatchResources) {
				r.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "env", Operator: metav1.LabelSelectorOpNotIn, Values: []string{fmt.Sprint("e", i)}},
				}}
			}))
			if _, matched, err := criteria.Matches(t.Context(), subject); matched || err != nil {
				t.Fatal(matched, err) // the rules do not match
			}
		}
		if view.namespaces != 1 || view.equivalents != 1 {
			t.Errorf("%s: the view was asked for the namespace %d times and for equivalents %d times, want once", namespace, view.namespaces, view.equivalents)
		}
	}
}
