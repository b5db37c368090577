// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/mirror"
)

// script answers a mirror.
type script struct {
	mu      sync.Mutex
	listErr error
	// watchErr is for watches that tell changes only; streams says that a watch may
	// tell all objects first.
	watchErr error
	streams  bool
	items    []corev1.ConfigMap
	watched  []*watch.FakeWatcher
}

func (s *script) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *script) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: s.items}, s.listErr
}

func (s *script) watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if options.SendInitialEvents != nil && !s.streams {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "watch", nil)
	}
	if s.watchErr != nil {
		return nil, s.watchErr
	}
	w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 100})
	if options.SendInitialEvents != nil {
		for _, item := range s.items {
			w.Add(item.DeepCopy())
		}
		w.Action(watch.Bookmark, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "5", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
	}
	s.watched = append(s.watched, w)
	return w, nil
}

// last returns the last watch, or nil.
func (s *script) last() *watch.FakeWatcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watched) == 0 {
		return nil
	}
	return s.watched[len(s.watched)-1]
}

func configMap(namespace, name string, set labels.Set) corev1.ConfigMap {
	return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: set, ResourceVersion: "4"}, Data: map[string]string{"a": "b"}}
}

func start(t *testing.T, s *script, clock clock.Clock) *mirror.Mirror[*corev1.ConfigMap] {
	t.Helper()
	read := func(object runtime.Object) (*corev1.ConfigMap, error) {
		given, ok := object.(*corev1.ConfigMap)
		if !ok {
			return nil, errors.New("no ConfigMap")
		}
		given.Data = nil
		return given, nil
	}
	m := mirror.New(mirror.Source{Name: "test", Example: &corev1.ConfigMap{}, List: s.list, Watch: s.watch}, clock, read, func() {})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return m
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(what)
		}
	}
}

func names(objects []*corev1.ConfigMap) string {
	var all []string
	for _, one := range objects {
		all = append(all, one.Namespace+"/"+one.Name)
	}
	return strings.Join(all, " ")
}

func TestHolds(t *testing.T) {
	for _, streams := range []bool{false, true} {
		t.Run(fmt.Sprintf("streams %t", streams), func(t *testing.T) {
			s := &script{streams: streams, items: []corev1.ConfigMap{
				configMap("b", "y", nil), configMap("b", "x", labels.Set{"k": "v"}), configMap("a", "z", labels.Set{"k": "v"}),
			}}
			m := start(t, s, clock.RealClock{})
			<-m.Answered()
			eventually(t, "usable", func() bool { return m.Usable() == nil && s.last() != nil })
			if got := names(m.List("", labels.Everything())); got != "a/z b/x b/y" {
				t.Errorf("got %s", got)
			}
			if got := names(m.List("b", labels.SelectorFromSet(labels.Set{"k": "v"}))); got != "b/x" {
				t.Errorf("got %s", got)
			}
			if got := names(m.List("", labels.SelectorFromSet(labels.Set{"k": "v"}))); got != "a/z b/x" {
				t.Errorf("got %s", got)
			}
			if one, found := m.Get("b", "x"); !found || one.Data != nil {
				t.Errorf("got %v, %t, want it as it was made", one, found)
			}
			changed := configMap("b", "x", nil)
			added, removed := configMap("c", "w", nil), configMap("a", "z", nil)
			for _, one := range []*corev1.ConfigMap{&changed, &added, &removed} {
				one.ResourceVersion = "6"
			}
			s.last().Modify(&changed)
			s.last().Add(&added)
			s.last().Delete(&removed)
			eventually(t, "changes", func() bool { return names(m.List("", labels.Everything())) == "b/x b/y c/w" })
			if got := names(m.List("", labels.SelectorFromSet(labels.Set{"k": "v"}))); got != "" {
				t.Errorf("got %s by labels that have gone", got)
			}
			if state := m.State(); !state.Synced || state.Objects != 3 || state.Err != nil {
				t.Errorf("got %+v", state)
			}
		})
	}
}

// TestRefusedAndUnknown: what has been refused is not to be relied on again because the
// API server does not know who asks any more.
func TestRefusedAndUnknown(t *testing.T) {
	s := &script{}
	clock := clocktesting.NewFakeClock(time.Now())
	m := start(t, s, clock)
	eventually(t, "read", func() bool { return m.Usable() == nil && s.last() != nil })
	for _, err := range []error{apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, ""), apierrors.NewUnauthorized("who are you")} {
		s.set(func() { s.listErr, s.watchErr = err, err })
		s.last().Stop()
		eventually(t, "noticed", func() bool {
			clock.Step(10 * time.Millisecond)
			return m.State().Err != nil && apierrors.ReasonForError(m.State().Err) == apierrors.ReasonForError(err)
		})
		if m.Usable() == nil {
			t.Errorf("usable after %v", err)
		}
	}
}

// TestRefused: what is not served any more must not be relied on; what is forbidden,
// after a while.
func TestRefused(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	tests := []struct {
		name string
		err  error
		// It is usable: at once, after a minute, after three.
		now, later, last bool
		whenUnread       bool // it is said that it has not been read
	}{
		{name: "forbidden", err: apierrors.NewForbidden(resource, "", nil), now: true},
		{name: "not served", err: apierrors.NewNotFound(resource, "")},
		{name: "not watched", err: apierrors.NewMethodNotSupported(resource, "watch")},
		{name: "unavailable", err: apierrors.NewServiceUnavailable("later"), now: true, later: true, last: true, whenUnread: true},
		{name: "not known", err: apierrors.NewUnauthorized("who are you"), now: true, later: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &script{}
			clock := clocktesting.NewFakeClock(time.Now())
			m := start(t, s, clock)
			eventually(t, "read", func() bool { return m.Usable() == nil && s.last() != nil })
			s.set(func() { s.listErr, s.watchErr = test.err, test.err })
			s.last().Stop()
			eventually(t, "noticed", func() bool {
				clock.Step(time.Millisecond)
				return m.State().Err != nil
			})
			if got := m.Usable() == nil; got != test.now {
				t.Errorf("usable at once: got %t, want %t", got, test.now)
			}
			clock.Step(time.Minute)
			if got := m.Usable() == nil; got != test.later {
				t.Errorf("usable later: got %t, want %t", got, test.later)
			}
			clock.Step(2 * time.Minute)
			if got := m.Usable() == nil; got != test.last {
				t.Errorf("usable at last: got %t, want %t", got, test.last)
			}
			s.set(func() { s.listErr, s.watchErr = nil, nil })
			eventually(t, "recovered", func() bool {
				clock.Step(10 * time.Millisecond)
				return m.State().Err == nil && m.Usable() == nil
			})

			unread := start(t, &script{listErr: test.err, watchErr: test.err}, clock)
			eventually(t, "noticed", func() bool { return unread.State().Err != nil })
			if got := errors.Is(unread.Usable(), mirror.ErrUnread); got != test.whenUnread {
				t.Errorf("got %v", unread.Usable())
			}
		})
	}
}
