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
	name    string
	source  cache.ListerWatcher
	example runtime.Object
	again   chan struct{} // holds one wish to read everything again

	mu       sync.Mutex
	objects  map[cache.ObjectName]runtime.Object
	revision int64 // that was heard of last
	heard    int64 // how often something was heard
	handler  cache.ResourceEventHandler
	synced   bool          // all has been read once
	complete chan struct{} // closed then
}

// newMirror mirrors a resource of the API, whose objects are like example.
func newMirror(client rest.Interface, resource string, example runtime.Object) *mirror {
	source := cache.NewListWatchFromClient(client, resource, "", fields.Everything())
	return &mirror{
		name:     "portcullis-" + resource,
		source:   cache.ToListWatcherWithWatchListSemantics(source, client),
		example:  example,
		again:    make(chan struct{}, 1),
		objects:  map[cache.ObjectName]runtime.Object{},
		complete: make(chan struct{}),
	}
}

// run mirrors until ctx ends.
func (m *mirror) run(ctx context.Context) {
	for ctx.Err() == nil {
		m.follow(ctx)
	}
}

// follow reads everything and then all changes, until it is to read everything
// again. What was read before stays until then.
func (m *mirror) follow(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var reading wait.Group
	defer reading.Wait()
	defer cancel()
	reflector := cache.NewReflectorWithOptions(m.source, m.example, m, cache.ReflectorOptions{
		Name:    m.name,
		Backoff: &wait.Backoff{Duration: mirrorBaseDelay, Factor: 2, Jitter: 0.2, Steps: 5, Cap: mirrorMaxDelay},
	})
	reading.StartWithContext(ctx, reflector.RunWithContext)
	select {
	case <-ctx.Done():
	case <-m.again:
	}
}

// readAgain makes the mirror read everything again. It returns at once.
func (m *mirror) readAgain() {
	select {
	case m.again <- struct{}{}:
	default:
	}
}

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
	return mirrorRegistration{resource: m.name, complete: m.complete}, nil
}

// held returns the versions of all objects, or nothing when they have not been
// read completely.
func (m *mirror) held() (versions, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.synced {
		return nil, errors.New("it has not been read completely")
	}
	held := make(versions, len(m.objects))
	for name, object := range m.objects {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		held[name] = accessor.GetResourceVersion()
	}
	return held, nil
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

// Replace takes a list as all there is. It tells of what is new first: where one
// object was stored before another one was deleted, one of them always is in
// force.
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
	for name, object := range objects {
		m.put(name, object)
	}
	for name := range m.objects {
		if _, kept := objects[name]; !kept {
			m.remove(name)
		}
	}
	if !m.synced {
		m.synced = true
		close(m.complete)
	}
	return m.hear(resourceVersion)
}

// Bookmark says that all changes up to a version have been told of.
func (m *mirror) Bookmark(resourceVersion string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hear(resourceVersion)
}

// progress returns the revision that was heard of last, and how often something
// was heard.
func (m *mirror) progress() (revision, heard int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revision, m.heard
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

// reach hears the revision of an event.
func (m *mirror) reach(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	return m.hear(accessor.GetResourceVersion())
}

func (m *mirror) hear(resourceVersion string) error {
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("resource version: %w", err)
	}
	m.revision = revision
	m.heard++
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
