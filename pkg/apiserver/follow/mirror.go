// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	mirrorBaseDelay = 100 * time.Millisecond
	mirrorMaxDelay  = 500 * time.Millisecond
)

// mirror holds what is stored of one kind, as the API of this server serves it. It
// does the work of a shared informer, for one handler and without a queue. The
// reflector of an informer rests longer after each list, up to a minute, when a
// few of them follow within two minutes, and takes no other setting; this one
// never rests for longer than mirrorMaxDelay.
type mirror struct {
	reflector *cache.Reflector

	mu       sync.Mutex
	objects  map[cache.ObjectName]runtime.Object
	revision int64 // all changes up to it are known
	handler  cache.ResourceEventHandler
	synced   bool          // all has been read once
	complete chan struct{} // closed then
}

// newMirror mirrors a resource of the API, whose objects are like example.
func newMirror(client rest.Interface, resource string, example runtime.Object) *mirror {
	m := &mirror{objects: map[cache.ObjectName]runtime.Object{}, complete: make(chan struct{})}
	source := cache.NewListWatchFromClient(client, resource, "", fields.Everything())
	m.reflector = cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, client), example, m, cache.ReflectorOptions{
		Name:    "portcullis-" + resource,
		Backoff: &wait.Backoff{Duration: mirrorBaseDelay, Factor: 2, Jitter: 0.2, Steps: 5, Cap: mirrorMaxDelay},
	})
	return m
}

// run mirrors until ctx ends.
func (m *mirror) run(ctx context.Context) { m.reflector.RunWithContext(ctx) }

// AddEventHandler tells handler of all objects, and from then on of all changes. It
// takes one handler.
func (m *mirror) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handler != nil {
		return nil, errors.New("it has a handler")
	}
	m.handler = handler
	for _, object := range m.objects {
		handler.OnAdd(object, true)
	}
	return mirrorRegistration{resource: m.reflector.Name(), complete: m.complete}, nil
}

// held returns the versions of all objects and the revision up to which they are
// known, or nothing when they have not been read completely.
func (m *mirror) held() (held versions, revision int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.synced {
		return nil, 0, errors.New("it has not been read completely")
	}
	held = make(versions, len(m.objects))
	for name, object := range m.objects {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, 0, err
		}
		held[name] = accessor.GetResourceVersion()
	}
	return held, m.revision, nil
}

// holds says whether an object is there.
func (m *mirror) holds(name cache.ObjectName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.objects[name]
	return ok
}

// Add is called by the reflector, as is all that follows, in the order of events.
func (m *mirror) Add(object any) error {
	name, added, err := named(object)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, added)
	return m.reach(added)
}

// Update is Add: the store knows what is new.
func (m *mirror) Update(object any) error { return m.Add(object) }

// Delete forgets an object.
func (m *mirror) Delete(object any) error {
	name, deleted, err := named(object)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(name)
	return m.reach(deleted)
}

// Replace takes a list as all there is.
func (m *mirror) Replace(list []any, resourceVersion string) error {
	objects := make(map[cache.ObjectName]runtime.Object, len(list))
	for _, item := range list {
		name, object, err := named(item)
		if err != nil {
			return err
		}
		objects[name] = object
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.objects {
		if _, kept := objects[name]; !kept {
			m.remove(name)
		}
	}
	for name, object := range objects {
		m.put(name, object)
	}
	if !m.synced {
		m.synced = true
		close(m.complete)
	}
	return m.setRevision(resourceVersion)
}

// Bookmark says that all changes up to a version have been told of.
func (m *mirror) Bookmark(resourceVersion string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.setRevision(resourceVersion)
}

// Resync does nothing: the handler forgets nothing.
func (*mirror) Resync() error { return nil }

func (m *mirror) put(name cache.ObjectName, object runtime.Object) {
	old, known := m.objects[name]
	m.objects[name] = object
	switch {
	case m.handler == nil:
	case known:
		m.handler.OnUpdate(old, object)
	default:
		m.handler.OnAdd(object, !m.synced)
	}
}

func (m *mirror) remove(name cache.ObjectName) {
	old, known := m.objects[name]
	delete(m.objects, name)
	if known && m.handler != nil {
		m.handler.OnDelete(old)
	}
}

// reach sets the revision to that of an event.
func (m *mirror) reach(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	return m.setRevision(accessor.GetResourceVersion())
}

func (m *mirror) setRevision(resourceVersion string) error {
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("resource version: %w", err)
	}
	m.revision = revision
	return nil
}

func named(object any) (cache.ObjectName, runtime.Object, error) {
	typed, ok := object.(runtime.Object)
	if !ok {
		return cache.ObjectName{}, nil, fmt.Errorf("unexpected %T", object)
	}
	accessor, err := meta.Accessor(typed)
	if err != nil {
		return cache.ObjectName{}, nil, err
	}
	return cache.MetaObjectToName(accessor), typed, nil
}

// mirrorRegistration says when the handler has been told of all that was stored
// at first.
type mirrorRegistration struct {
	resource string
	complete <-chan struct{}
}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (r mirrorRegistration) HasSynced() bool { return cache.IsDone(r) }

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r mirrorRegistration) HasSyncedChecker() cache.DoneChecker { return r }

// Name implements cache.DoneChecker.
func (r mirrorRegistration) Name() string { return r.resource }

// Done implements cache.DoneChecker.
func (r mirrorRegistration) Done() <-chan struct{} { return r.complete }
