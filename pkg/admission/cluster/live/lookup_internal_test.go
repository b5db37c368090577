// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestLookupIsFresh: each is given what was read after they asked, and those who ask
// while something is read share the next reading.
func TestLookupIsFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookup[int]()
		readings, hold := 0, make(chan struct{})
		read := func(context.Context) (int, error) {
			readings++
			mine := readings
			<-hold
			return mine, nil
		}
		answers := make(chan int, 5)
		ask := func() {
			got, err := l.get(t.Context(), "key", read)
			if err != nil {
				t.Error(err)
			}
			answers <- got
		}
		go ask()
		synctest.Wait()
		for range 4 {
			go ask()
		}
		synctest.Wait()
		hold <- struct{}{}
		if got := <-answers; got != 1 {
			t.Errorf("the first who asked got reading %d", got)
		}
		hold <- struct{}{}
		for range 4 {
			if got := <-answers; got != 2 {
				t.Errorf("who asked meanwhile got reading %d, want the second", got)
			}
		}
		synctest.Wait()
		if readings != 2 || len(l.flights)+len(l.waiting) != 0 {
			t.Errorf("%d readings, %d under way, %d waiting; want 2, 0, 0", readings, len(l.flights), len(l.waiting))
		}
	})
}

// TestLookupEnds: an answer is as it was read, absence and errors included, each time
// anew, and nobody waits longer than they can.
func TestLookupEnds(t *testing.T) {
	l := newLookup[string]()
	resource := schema.GroupResource{Resource: "configmaps"}
	ask := func(found string, err error) (string, error) {
		return l.get(t.Context(), "key", func(context.Context) (string, error) { return found, err })
	}
	broken := errors.New("broken")
	if _, err := ask("", broken); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := ask("", apierrors.NewNotFound(resource, "a")); !isAbsent(err) {
		t.Errorf("got %v, want that it is absent", err)
	}
	// That nobody serves the resource is not that there is no object.
	if _, err := ask("", apierrors.NewGenericServerResponse(404, "GET", resource, "a", "", 0, true)); isAbsent(err) || err == nil {
		t.Errorf("got %v, want that it is not served", err)
	}
	if got, err := ask("there", nil); got != "there" || err != nil {
		t.Errorf("got %q, %v", got, err)
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

// TestLookupPanics: a panic is an error for all who wait for the reading, and later
// readings work.
func TestLookupPanics(t *testing.T) {
	l := newLookup[int]()
	_, err := l.get(t.Context(), "key", func(context.Context) (int, error) { panic("broken") })
	if err == nil || isAbsent(err) || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v, want an error about the panic", err)
	}
	if got, err := l.get(t.Context(), "key", func(context.Context) (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("got %d, %v after a panic, want 7", got, err)
	}
}
