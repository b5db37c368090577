// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mirror follows the objects of one resource of an API server and holds what
// is needed of each, as a shared informer does, without handlers and queues. Unlike an
// informer it says when what it holds must not be relied on any more, it rests for no
// longer than a few seconds when the API server does not answer, and it returns
// objects in order. It does not know what the objects are for.
package mirror

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// minPause and maxPause bound how long a mirror rests after an error, before
	// chance makes that up to half as long again.
	minPause = 200 * time.Millisecond
	maxPause = 5 * time.Second
	// grace is for how long what has been read may be relied on when it is forbidden
	// now: an API server that starts forbids everything until it has read its rules.
	grace = 5 * time.Second
	// strangerGrace is that when the API server does not know who asks any more: a new
	// token is read within a minute.
	strangerGrace = 2 * time.Minute
)

// Source is a resource of an API server.
type Source struct {
	// Name names the resource in logs.
	Name string
	// Example is an object of the type that List and Watch return.
	Example runtime.Object
	List    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// Client is what List and Watch use. It tells whether it can stream lists.
	Client any
}

// Mirror follows a Source. T is what is held of an object. Make one by New.
type Mirror[T metav1.Object] struct {
	source Source
	clock  clock.Clock
	told   func()
	store  *store[T]
	answer chan struct{} // closed by the first answer

	mu       sync.Mutex
	answered bool
	synced   bool
	// isStreaming says that a watch has begun that tells all objects first.
	isStreaming bool
	heard       time.Time // when the API server told anything last
	err         error     // of the last attempt to list or watch
	refused     error     // the last refusal, when there was no success since
	refusing    time.Time // since when
}

// New returns a mirror that holds what read makes of the objects of source. Read may
// modify what it is given, and may be given what it has made. It must not fail for an
// object of the right type: the reflector would write the object into the log. Changed
// is called after each change, by Run, which waits for it.
func New[T metav1.Object](source Source, clock clock.Clock, read func(runtime.Object) (T, error), changed func()) *Mirror[T] {
	m := &Mirror[T]{source: source, clock: clock, told: changed, answer: make(chan struct{})}
	m.store = &store[T]{read: read, changed: m.changed, namespaces: map[string]*shelf[T]{}}
	return m
}

// Run follows the source until ctx ends. What is held stays then.
func (m *Mirror[T]) Run(ctx context.Context) {
	listWatch := &cache.ListWatch{ListWithContextFunc: m.list, WatchFuncWithContext: m.watch}
	pause := wait.Backoff{Duration: minPause, Factor: 2, Jitter: 0.5, Steps: 10, Cap: maxPause}
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(listWatch, m.source.Client), m.source.Example, m.store,
		cache.ReflectorOptions{Name: m.source.Name, Backoff: &pause})
	rest := pause
	for ctx.Err() == nil {
		began := m.clock.Now()
		if err := reflector.ListAndWatchWithContext(ctx); err != nil && ctx.Err() == nil {
			m.fail(ctx, err)
		}
		if m.clock.Since(began) > maxPause {
			rest = pause
		}
		timer := m.clock.NewTimer(min(rest.Step(), maxPause+maxPause/2))
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

func (m *Mirror[T]) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	listed, err := m.source.List(ctx, options)
	if err == nil {
		m.hear()
	}
	return listed, err
}

func (m *Mirror[T]) hear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = m.clock.Now()
}

func (m *Mirror[T]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	watched, err := m.source.Watch(ctx, options)
	switch {
	case err == nil && options.SendInitialEvents != nil:
		m.mu.Lock()
		m.isStreaming = true
		m.mu.Unlock()
	case err == nil:
		m.mu.Lock()
		m.succeedLocked(ctx)
		m.mu.Unlock()
	case err != nil && (options.SendInitialEvents == nil || isRefusal(err)):
		// The reflector may try again by itself. A list that cannot be streamed it
		// reads in another way.
		m.fail(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	m.hear()
	return listen(watched, m.hear), nil
}

// fail notes why the source cannot be followed. It logs the first failure of a kind.
func (m *Mirror[T]) fail(ctx context.Context, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if isExpired(err) {
		return // what is held is read anew
	}
	if m.err == nil || isRefusal(m.err) != isRefusal(err) {
		klog.FromContext(ctx).Info("A resource of the cluster cannot be followed at the moment", "resource", m.source.Name, "err", err)
	}
	m.err = err
	if !isRefusal(err) {
		return
	}
	if m.refused == nil {
		m.refusing = m.clock.Now()
	}
	if apierrors.IsUnauthorized(err) {
		if m.refused == nil { // what was refused otherwise stays so
			m.refused = err
		}
		return
	}
	m.refused = err
	m.answerLocked()
}

func (m *Mirror[T]) succeedLocked(ctx context.Context) {
	if m.err != nil {
		klog.FromContext(ctx).Info("A resource of the cluster can be followed again", "resource", m.source.Name)
	}
	m.err, m.refused = nil, nil
}

func (m *Mirror[T]) changed(complete bool) {
	if complete {
		m.mu.Lock()
		m.synced = true
		if m.isStreaming {
			m.err, m.refused, m.isStreaming = nil, nil, false
		}
		m.answerLocked()
		m.mu.Unlock()
	}
	m.told()
}

func (m *Mirror[T]) answerLocked() {
	if !m.answered {
		m.answered = true
		close(m.answer)
	}
}

// isRefusal says that the API server does not serve the resource, or not to us, and
// not that it cannot answer at the moment.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsUnauthorized(err)
}

// graceOf is for how long what has been read may be relied on in spite of a refusal.
func graceOf(refusal error) time.Duration {
	switch {
	case apierrors.IsForbidden(refusal):
		return grace
	case apierrors.IsUnauthorized(refusal):
		return strangerGrace
	default:
		return 0
	}
}

func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// Answered is closed when the API server has answered for the first time: by all
// objects, or by refusing them.
func (m *Mirror[T]) Answered() <-chan struct{} { return m.answer }

// ErrUnread says that a mirror has not read its objects yet.
var ErrUnread = errors.New("the objects have not been read yet")

// Usable returns nil when what is held may be relied on: all objects have been read,
// and the API server has not refused to tell of changes since. That it cannot be
// reached, or has forbidden them for a few seconds only, or has not known us for less
// than two minutes, is no reason not to rely on what it said last. Else it returns
// ErrUnread, or why the objects are refused.
func (m *Mirror[T]) Usable() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.refused != nil && (!m.synced || m.clock.Since(m.refusing) >= graceOf(m.refused)):
		return m.refused
	case !m.synced:
		return ErrUnread
	default:
		return nil
	}
}

// State is what a mirror has come to.
type State struct {
	Synced  bool  // all objects have been read once
	Objects int   // are held
	Err     error // why the last attempt to list or watch failed; nil when it did not
	// HeardAt is when the API server told objects or changes last, or that there are
	// none; zero when it never has.
	HeardAt time.Time
}

// State returns the present state.
func (m *Mirror[T]) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return State{Synced: m.synced, Objects: m.store.size(), Err: m.err, HeardAt: m.heard}
}

// Get returns an object that is held.
func (m *Mirror[T]) Get(namespace, name string) (T, bool) { return m.store.get(namespace, name) }

// List returns the objects of a namespace that selector selects, or those of all
// namespaces when it is empty, ordered by namespace and name.
func (m *Mirror[T]) List(namespace string, selector labels.Selector) []T {
	return m.store.list(namespace, selector)
}
