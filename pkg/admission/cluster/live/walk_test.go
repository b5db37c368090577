// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

// walked visits up to so many objects, and writes them with what is left.
func walked(t *testing.T, view cluster.View, selection cluster.Selection, most int) string {
	t.Helper()
	var all []string
	err := view.Walk(t.Context(), selection, func(one cluster.Visited) (bool, error) {
		text := fmt.Sprintf("%s/%s:%d", one.Object.GetNamespace(), one.Object.GetName(), one.Left)
		if one.More {
			text += "+"
		}
		all = append(all, text)
		return len(all) < most, nil
	})
	if err != nil {
		all = append(all, "error: "+err.Error())
	}
	return strings.Join(all, " ")
}

func TestWalk(t *testing.T) {
	s := newAPIServer(t)
	for _, namespace := range []string{"team", "team-a"} {
		for i := range 2 {
			s.put("configmaps", object("v1", "ConfigMap", namespace, fmt.Sprint("c", i), map[string]string{"in": namespace}))
		}
	}
	for i := range 12 {
		s.put("secrets", object("v1", "Secret", "default", fmt.Sprintf("s%02d", i), map[string]string{"x": "y"}))
	}
	c := newCluster(t, s)
	run(t, c)
	all, labelled := everyOf(secret), everyOf(secret)
	labelled.Selector = labels.SelectorFromSet(labels.Set{"x": "y"})
	tests := []struct {
		name      string
		selection cluster.Selection
		most      int
		want      string
		pages     int
	}{
		{"in the order of the API server", cluster.Selection{Kind: configMap, Selector: labels.Everything()}, 9, "team-a/c0:3 team-a/c1:2 team/c0:1 team/c1:0", 1},
		{"some", cluster.Selection{Kind: configMap, Selector: labels.SelectorFromSet(labels.Set{"in": "team"})}, 9, "team/c0:1 team/c1:0", 1},
		{"a namespace", cluster.Selection{Kind: configMap, Namespace: "team", Selector: labels.Everything()}, 9, "team/c0:1 team/c1:0", 1},
		{"of a page", all, 2, "default/s00:11 default/s01:10", 1},
		{"of a page, without a count", labelled, 2, "default/s00:9+ default/s01:8+", 1},
		{"as many as a page has", labelled, 10, "default/s00:9+ default/s01:8+ default/s02:7+ default/s03:6+ default/s04:5+ default/s05:4+ default/s06:3+ default/s07:2+ default/s08:1+ default/s09:0+", 1},
		{"a name", named(secret, "s03"), 9, "default/s03:0", 0},
		{"no name", named(secret, "none"), 9, "", 0},
		{"nothing", cluster.Selection{Kind: secret, Selector: labels.Nothing()}, 9, "", 0},
		{"no selector", cluster.Selection{Kind: secret}, 9, "", 0},
		{"unknown kind", cluster.Selection{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Gizmo"}, Selector: labels.Everything()}, 9, `error: no matches for kind "Gizmo" in version "v1"`, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := s.count("list secrets") + s.count("list configmaps")
			if got := walked(t, c.View(), test.selection, test.most); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if pages := s.count("list secrets") + s.count("list configmaps") - before; pages != test.pages {
				t.Errorf("%d pages were read, want %d", pages, test.pages)
			}
		})
	}
	if got := walked(t, c.View(), all, 99); strings.Count(got, " ") != 11 || !strings.HasSuffix(got, " default/s11:0") {
		t.Errorf("got %s, want all", got)
	}
	refused := errors.New("enough")
	if err := c.View().Walk(t.Context(), all, func(cluster.Visited) (bool, error) { return true, refused }); !errors.Is(err, refused) {
		t.Errorf("got %v, want the error of who visits", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := c.View().Walk(ctx, all, func(cluster.Visited) (bool, error) { cancel(); return true, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the time is over", err)
	}
	s.change(func() { s.refuse["list secrets"] = forbidden("secrets") })
	if got := walked(t, c.View(), all, 9); !strings.HasSuffix(got, "grant this server get, list and watch on secrets") {
		t.Errorf("got %q", got)
	}
}

// TestWalkOverFollowed reads nothing.
func TestWalkOverFollowed(t *testing.T) {
	s := newAPIServer(t)
	for _, namespace := range []string{"team", "team-a"} {
		s.put("configmaps", object("v1", "ConfigMap", namespace, "c", nil))
	}
	c := newCluster(t, s)
	c.Use([]schema.GroupVersionKind{configMap})
	run(t, c)
	before := s.count("list configmaps")
	if got := walked(t, c.View(), cluster.Selection{Kind: configMap, Selector: labels.Everything()}, 9); got != "team-a/c:1 team/c:0" {
		t.Errorf("got %s", got)
	}
	if now := s.count("list configmaps"); now != before {
		t.Error("what is held was read")
	}
}

// TestWalkOverLargeObjects: a walk holds one page, which is small in bytes, and what is
// kept of it holds nothing else of it.
func TestWalkOverLargeObjects(t *testing.T) {
	const count, each = 120, 1 << 20
	text := strings.Repeat("x", each)
	s := newAPIServer(t)
	for i := range count {
		one := object("v1", "Secret", "default", fmt.Sprintf("s%03d", i), nil)
		one.Object["stringData"] = map[string]any{"text": text}
		s.put("secrets", one)
	}
	c := newCluster(t, s)
	run(t, c)
	s.change(func() { s.limits = nil })
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc >> 20
	}
	before := heap()
	var most uint64
	var kept []*unstructured.Unstructured
	read := 0
	err := c.View().Walk(t.Context(), everyOf(secret), func(one cluster.Visited) (bool, error) {
		if read += one.Bytes; read/each%10 == 5 {
			most = max(most, heap())
			kept = append(kept, one.Object)
		}
		return true, nil
	})
	if err != nil || read < count*each || read > count*each*11/10 {
		t.Errorf("got %v, %d bytes", err, read)
	}
	if len(kept) == 0 || most > before+uint64(len(kept))+60 {
		t.Errorf("the heap grew from %d to %d MiB, with %d objects kept", before, most, len(kept))
	}
	runtime.KeepAlive(kept)
	s.change(func() {
		if !slices.Equal(s.limits[:3], []int{10, 15, 15}) || len(s.limits) != 9 {
			t.Errorf("the pages are of %d objects", s.limits)
		}
	})
}

func TestWalkGoesOn(t *testing.T) {
	s := newAPIServer(t)
	for i := range 25 {
		s.put("secrets", object("v1", "Secret", "default", fmt.Sprintf("s%02d", i), nil))
	}
	c := newCluster(t, s)
	run(t, c)
	gone := func(next string) *apierrors.StatusError {
		err := apierrors.NewResourceExpired("The provided continue parameter is too old")
		err.ErrStatus.Continue = next
		return err
	}
	tests := []struct {
		name  string
		gone  map[string]string // tokens, and those that they are to be replaced by
		count int
		err   string
	}{
		{"with the token that it is given", map[string]string{"default/s09": "default/s09 "}, 25, ""},
		{"not without one", map[string]string{"default/s09": ""}, 10, "The provided continue parameter is too old"},
		{"not when that is of no use", map[string]string{"default/s09": "default/s09 ", "default/s09 ": "default/s09 "}, 10, "The provided continue parameter is too old"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s.change(func() {
				s.expired = func(token string) *apierrors.StatusError {
					if next, found := test.gone[token]; found {
						return gone(next)
					}
					return nil
				}
			})
			seen := map[string]bool{}
			err := c.View().Walk(t.Context(), everyOf(secret), func(one cluster.Visited) (bool, error) {
				if seen[one.Object.GetName()] {
					t.Errorf("%s was shown twice", one.Object.GetName())
				}
				seen[one.Object.GetName()] = true
				return true, nil
			})
			if len(seen) != test.count {
				t.Errorf("%d objects, want %d", len(seen), test.count)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
}

// TestWalkBelow: what is laid over the cluster is among what the API server has, which
// is read in pages all the same.
func TestWalkBelow(t *testing.T) {
	s := newAPIServer(t)
	for i := range 30 {
		s.put("secrets", object("v1", "Secret", "default", fmt.Sprintf("s%02d", i), nil))
	}
	c := newCluster(t, s)
	run(t, c)
	above, err := overlay.New(c.View(), []*unstructured.Unstructured{
		object("v1", "Secret", "default", "s01", map[string]string{"own": "x"}), object("v1", "Secret", "default", "s09x", nil),
		object("v1", "Secret", "zoo", "a", nil), object("v1", "Secret", "a", "z", nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	every := cluster.Selection{Kind: secret, Selector: labels.Everything()}
	if got, want := walked(t, above, every, 4), "a/z:29+ default/s00:28+ default/s01:27+ default/s02:26+"; got != want || s.count("list secrets") != 1 {
		t.Errorf("got %s in %d pages, want %s in one", got, s.count("list secrets"), want)
	}
	got := strings.Fields(walked(t, above, every, 99))
	if len(got) != 33 || got[11] != "default/s09x:18+" || got[31] != "default/s29:1" || got[32] != "zoo/a:0" {
		t.Errorf("got %s", got)
	}
}
