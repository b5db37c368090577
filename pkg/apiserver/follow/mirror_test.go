// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

func versionedPolicy(t *testing.T, name, version string) *policyapi.ValidatingAdmissionPolicy {
	t.Helper()
	policies := namedPolicies(versions{{Name: name}: version})
	return &policies[0]
}

// heard notes events.
type heard []string

func (h *heard) OnAdd(of any, first bool) {
	policy, ok := of.(*policyapi.ValidatingAdmissionPolicy)
	if !ok {
		*h = append(*h, fmt.Sprintf("put %T", of))
		return
	}
	*h = append(*h, fmt.Sprintf("put %s@%s %t", policy.Name, policy.ResourceVersion, first))
}

func (h *heard) OnUpdate(_, of any) { *h = append(*h, fmt.Sprintf("update %T", of)) }

func (h *heard) OnDelete(of any) {
	gone, ok := of.(metav1.Object)
	if !ok {
		*h = append(*h, fmt.Sprintf("gone %T", of))
		return
	}
	*h = append(*h, fmt.Sprintf("gone %s@%s", gone.GetName(), gone.GetResourceVersion()))
}

func (h *heard) Reached(version string) { *h = append(*h, "reached "+version) }

func (h *heard) take() []string {
	events := *h
	*h = nil
	slices.Sort(events)
	return events
}

func TestMirror(t *testing.T) {
	a := func(version string) any { return versionedPolicy(t, "a", version) }
	b := func(version string) any { return versionedPolicy(t, "b", version) }
	m := newMirror(nil, "validatingadmissionpolicies", versionedPolicy(t, "", ""))
	var events heard
	registration, err := m.AddEventHandler(&events)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.held(); err == nil || registration.HasSynced() {
		t.Error("everything is known before anything was read")
	}
	steps := []struct {
		name string
		do   func() error
		want []string
		held int
	}{
		{name: "first list", do: func() error { return m.Replace([]any{a("2"), b("3")}, "5") }, want: []string{"put a@2 true", "put b@3 true", "reached 5"}, held: 2},
		{name: "change", do: func() error { return m.Update(a("6")) }, want: []string{"put a@6 false", "reached 6"}, held: 2},
		{name: "deletion", do: func() error { return m.Delete(b("7")) }, want: []string{"gone b@7", "reached 7"}, held: 1},
		{name: "deletion of what is not known", do: func() error { return m.Delete(b("8")) }, want: []string{"reached 8"}, held: 1},
		{name: "bookmark", do: func() error { return m.Bookmark("20") }, want: []string{"reached 20"}, held: 1},
		{name: "new one", do: func() error { return m.Add(b("21")) }, want: []string{"put b@21 false", "reached 21"}, held: 2},
		{name: "list of a storage that has gone back", do: func() error { return m.Replace([]any{b("3")}, "4") }, want: []string{"gone a@4", "put b@3 false", "reached 4"}, held: 1},
		{name: "empty list", do: func() error { return m.Replace(nil, "5") }, want: []string{"gone b@5", "reached 5"}},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := events.take(); !slices.Equal(got, step.want) {
			t.Errorf("%s: heard %v, want %v", step.name, got, step.want)
		}
		if held, err := m.held(); err != nil || len(held) != step.held {
			t.Errorf("%s: holds %v, %v; want %d", step.name, held, err, step.held)
		}
	}
	if !registration.HasSynced() {
		t.Error("not everything is known")
	}
	for _, wrong := range []func() error{
		func() error { return m.Add("text") },
		func() error { return m.Replace([]any{"text"}, "9") },
	} {
		if wrong() == nil {
			t.Error("took what is no object")
		}
	}
}

func TestMirrorTakesOneHandlerFirst(t *testing.T) {
	m := newMirror(nil, "validatingadmissionpolicies", versionedPolicy(t, "", ""))
	if _, err := m.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err == nil {
		t.Error("took a second handler, which hears nothing")
	}
	if _, err := mirrorOf(t, versions{{Name: "a"}: "2"}).AddEventHandler(cache.ResourceEventHandlerFuncs{}); err == nil {
		t.Error("took a handler that has missed an object")
	}
}

// TestMirrorTellsOfTheNewFirst: between the events of a list, nothing that was
// replaced is out of force before what replaces it is in force.
func TestMirrorTellsOfTheNewFirst(t *testing.T) {
	m := newMirror(nil, "validatingadmissionpolicies", versionedPolicy(t, "", ""))
	var events heard
	if _, err := m.AddEventHandler(&events); err != nil {
		t.Fatal(err)
	}
	replace(t, m, versions{{Name: "old-1"}: "2", {Name: "old-2"}: "2"})
	events.take()
	if err := m.Replace([]any{versionedPolicy(t, "new-1", "6"), versionedPolicy(t, "new-2", "7")}, "9"); err != nil {
		t.Fatal(err)
	}
	for i, event := range events {
		if added := strings.HasPrefix(event, "put "); added != (i < 2) {
			t.Errorf("heard %v, want all additions before all deletions", events)
			break
		}
	}
	if last := events[len(events)-1]; last != "reached 9" {
		t.Errorf("heard %s last, want that everything was told of", last)
	}
}

// lists is the source of a mirror. Its watches tell nothing.
type lists struct{ asked chan struct{} }

func (l lists) List(metav1.ListOptions) (runtime.Object, error) {
	l.asked <- struct{}{}
	return &policyapi.ValidatingAdmissionPolicyList{}, nil
}

func (lists) Watch(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }

func (lists) IsWatchListSemanticsUnSupported() bool { return true }

func TestMirrorReadsAgain(t *testing.T) {
	m := newMirror(nil, "validatingadmissionpolicies", versionedPolicy(t, "", ""))
	source := lists{asked: make(chan struct{})}
	m.source = source
	if _, err := m.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.run(ctx)
	}()
	<-source.asked
	m.readAgain()
	<-source.asked
	cancel()
	<-done
}
