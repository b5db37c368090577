// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

const eventTimeout = 30 * time.Second

func testListPages(t *testing.T, a *api) {
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("p%d", i)
		a.createPolicy(t, newPolicy(name))
		want = append(want, name)
	}
	var got []string
	options := metav1.ListOptions{Limit: 3}
	for _, remaining := range []int64{4, 1, 0} {
		page, err := a.policies().List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Items {
			got = append(got, p.Name)
		}
		if page.ResourceVersion == "" {
			t.Error("page without resourceVersion")
		}
		if left := page.RemainingItemCount; remaining > 0 && (left == nil || *left != remaining) {
			t.Errorf("remaining items %v, want %d", left, remaining)
		}
		if (page.Continue == "") != (remaining == 0) {
			t.Errorf("continue is %q with %d items left", page.Continue, remaining)
		}
		options.Continue = page.Continue
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages hold %v, want %v", got, want)
	}
}

func testListSelectors(t *testing.T, a *api) {
	for name, team := range map[string]string{"a1": "a", "a2": "a", "b1": "b"} {
		a.createPolicy(t, labelledPolicy(name, team))
	}
	tests := []struct {
		options metav1.ListOptions
		want    []string
	}{
		{metav1.ListOptions{LabelSelector: "team=a"}, []string{"a1", "a2"}},
		{metav1.ListOptions{LabelSelector: "team!=a"}, []string{"b1"}},
		{metav1.ListOptions{LabelSelector: "team in (a, b)"}, []string{"a1", "a2", "b1"}},
		{metav1.ListOptions{FieldSelector: "metadata.name=b1"}, []string{"b1"}},
		{metav1.ListOptions{FieldSelector: "metadata.name!=a1"}, []string{"a2", "b1"}},
		{metav1.ListOptions{FieldSelector: "metadata.name=b1", LabelSelector: "team=a"}, []string{}},
		{metav1.ListOptions{LabelSelector: "team=a", ResourceVersion: "0"}, []string{"a1", "a2"}},
	}
	for _, test := range tests {
		if got := a.policyNames(t, test.options); !slices.Equal(got, test.want) {
			t.Errorf("%+v: %v, want %v", test.options, got, test.want)
		}
	}
	_, err := a.policies().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.failurePolicy=Fail"})
	wantReason(t, err, metav1.StatusReasonBadRequest)
}

func testWatch(t *testing.T, a *api) {
	list, err := a.policies().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events := a.watch(t, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "team=a"})

	a.createPolicy(t, labelledPolicy("b1", "b"))
	p := a.createPolicy(t, labelledPolicy("a1", "a"))
	wantEvent(t, events, watch.Added, "a1")
	p.Spec.Validations[0].Message = "changed"
	p, err = a.policies().Update(t.Context(), p, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEvent(t, events, watch.Modified, "a1")
	p.Labels["team"] = "b" // leaves the selection
	if _, err := a.policies().Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantEvent(t, events, watch.Deleted, "a1")
	a.createPolicy(t, labelledPolicy("a2", "a"))
	wantEvent(t, events, watch.Added, "a2")
	if err := a.policies().Delete(t.Context(), "a2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantEvent(t, events, watch.Deleted, "a2")
}

// testWatchList reads the state as a stream that ends in a bookmark, as informers
// do, and goes on from there.
func testWatchList(t *testing.T, a *api) {
	a.createPolicy(t, newPolicy("p"))
	yes := true
	events := a.watch(t, metav1.ListOptions{
		SendInitialEvents:    &yes,
		AllowWatchBookmarks:  true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	wantEvent(t, events, watch.Added, "p")
	bookmark := wantEvent(t, events, watch.Bookmark, "")
	if bookmark.Annotations[metav1.InitialEventsAnnotationKey] != "true" || bookmark.ResourceVersion == "" {
		t.Errorf("bookmark does not end the initial events: %+v", bookmark.ObjectMeta)
	}
	a.createPolicy(t, newPolicy("q"))
	wantEvent(t, events, watch.Added, "q")
}

func (a *api) watch(t *testing.T, options metav1.ListOptions) <-chan watch.Event {
	t.Helper()
	watcher, err := a.policies().Watch(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	return watcher.ResultChan()
}

func wantEvent(t *testing.T, events <-chan watch.Event, want watch.EventType, name string) *v1alpha1.ValidatingAdmissionPolicy {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	select {
	case event := <-events:
		p, ok := event.Object.(*v1alpha1.ValidatingAdmissionPolicy)
		if !ok || event.Type != want || p.Name != name {
			t.Fatalf("event %s of %+v, want %s of %q", event.Type, event.Object, want, name)
		}
		return p
	case <-ctx.Done():
		t.Fatalf("no event, want %s of %q", want, name)
		return nil
	}
}
