// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestLookupRemembers: that there is no object is remembered for a second, and an error
// is not.
func TestLookupRemembers(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	l := newLookup[string](clock)
	resource := schema.GroupResource{Resource: "configmaps"}
	asked := 0
	ask := func(found string, err error) (string, error) {
		return l.get(t.Context(), "key", func(context.Context) (string, error) {
			asked++
			return found, err
		})
	}
	broken := errors.New("broken")
	if _, err := ask("", broken); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	for range 3 {
		if _, err := ask("", apierrors.NewNotFound(resource, "a")); !isAbsent(err) {
			t.Errorf("got %v, want that it is absent", err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
	clock.Step(absentFor + time.Millisecond)
	if got, err := ask("there", nil); got != "there" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	// That nobody serves the resource is not that there is no object.
	unserved := apierrors.NewGenericServerResponse(404, "GET", resource, "a", "", 0, true)
	for range 2 {
		if _, err := ask("", unserved); isAbsent(err) || err == nil {
			t.Errorf("got %v, want that it is not served", err)
		}
	}
	if asked != 5 {
		t.Errorf("asked %d times, want 5", asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hold := make(chan struct{})
	defer close(hold)
	_, err := l.get(ctx, "other", func(context.Context) (string, error) { <-hold; return "", nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that nobody waits any more", err)
	}
}

// TestTooManyKinds: the kinds that are followed are bounded, and which ones they are
// does not depend on the order in which they are named.
func TestTooManyKinds(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	k := newKinds(nil, clock, newSurvey(nil, clock))
	var kinds []schema.GroupVersionKind
	for i := range maxFollowed + 3 {
		kinds = append(kinds, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: string(rune('A' + i))})
	}
	k.use(kinds)
	if followed, beyond := k.status(); len(followed) != maxFollowed || beyond != 3 {
		t.Errorf("%d are followed and %d are not, want %d and 3", len(followed), beyond, maxFollowed)
	}
	first := k.find(kinds[0])
	kinds[0], kinds[5] = kinds[5], kinds[0]
	k.use(kinds)
	if first == nil || k.find(kinds[5]) != first {
		t.Error("another order made other followers")
	}
}
