// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// mirror tells of what is stored of one kind, as the API of this server serves it,
// and holds in which versions it has told of that. It does the work of a shared
// informer, for one handler, without a queue and without the objects. The reflector
// of an informer rests longer after each list, up to a minute, when a few of them
// follow within two minutes, and takes no other setting; this one never rests for
// longer than mirrorMaxDelay.
type mirror struct {
	name    string
	source  cache.ListerWatcher
	example runtime.Object
	again   chan struct{} // holds one wish to read everything again
	handled chan struct{} // closed when there is a handler

	mu       sync.Mutex
	told     versions
	revision int64 // that was heard of last
	heard    int64 // how often something was heard
	handler  cache.ResourceEventHandler
	reached  func(resourceVersion string) // of the handler, if it wants to know
	synced   bool                         // all has been read once
	complete chan struct{}                // closed then
}

// newMirror mirrors a resource of the API, whose objects are like example.
func newMirror(client rest.Interface, resource string, example runtime.Object) *mirror {
	source := cache.NewListWatchFromClient(client, resource, "", fields.Everything())
	return &mirror{
		name:     "portcullis-" + resource,
		source:   cache.ToListWatcherWithWatchListSemantics(source, client),
		example:  example,
		again:    make(chan struct{}, 1),
		handled:  make(chan struct{}),
		told:     versions{},
		complete: make(chan struct{}),
	}
}

// run mirrors until ctx ends, from when there is a handler.
func (m *mirror) run(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-m.handled:
	}
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

// AddEventHandler tells handler of all objects, and from then on of all changes: of
// what was written by OnAdd, and of which name is gone, since which version, by
// OnDelete. A handler that has a method Reached is told with it up to which version it
// has heard of everything. It takes one handler, before it has read anything.
func (m *mirror) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handler != nil {
		return nil, errors.New("it has a handler")
	}
	if m.heard > 0 {
		return nil, errors.New("it has read objects without a handler")
	}
	m.handler = handler
	if progress, ok := handler.(interface{ Reached(resourceVersion string) }); ok {
		m.reached = progress.Reached
	}
	close(m.handled)
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
	return maps.Clone(m.told), nil
}

// Add is called by the reflector, as is all that follows, in the order of events.
func (m *mirror) Add(object any) error {
	added, err := newEvent(object)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(added)
	return m.hear(added.version)
}

// Update is Add: the store knows what is new.
func (m *mirror) Update(object any) error { return m.Add(object) }

// Delete forgets an object.
func (m *mirror) Delete(object any) error {
	deleted, err := newEvent(object)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(deleted.name, deleted.version)
	return m.hear(deleted.version)
}

// Replace takes a list as all there is. It tells of what is new first: where one
// object was stored before another one was deleted, one of them always is in
// force.
func (m *mirror) Replace(list []any, resourceVersion string) error {
	listed := make(map[cache.ObjectName]event, len(list))
	for _, item := range list {
		one, err := newEvent(item)
		if err != nil {
			return err
		}
		listed[one.name] = one
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range listed {
		m.put(one)
	}
	for name := range m.told {
		if _, kept := listed[name]; !kept {
			m.remove(name, resourceVersion)
		}
	}
	err := m.hear(resourceVersion)
	if !m.synced {
		m.synced = true
		close(m.complete)
	}
	return err
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

func (m *mirror) put(e event) {
	m.told[e.name] = e.version
	if m.handler != nil {
		m.handler.OnAdd(e.object, !m.synced)
	}
}

func (m *mirror) remove(name cache.ObjectName, version string) {
	_, known := m.told[name]
	delete(m.told, name)
	if known && m.handler != nil {
		m.handler.OnDelete(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name, ResourceVersion: version,
		}})
	}
}

func (m *mirror) hear(resourceVersion string) error {
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("resource version: %w", err)
	}
	m.revision = revision
	m.heard++
	if m.reached != nil {
		m.reached(resourceVersion)
	}
	return nil
}

// event is an object that was written or deleted.
type event struct {
	name    cache.ObjectName
	version string
	object  runtime.Object
}

func newEvent(of any) (event, error) {
	object, ok := of.(runtime.Object)
	if !ok {
		return event{}, fmt.Errorf("unexpected %T", of)
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return event{}, err
	}
	return event{name: cache.MetaObjectToName(accessor), version: accessor.GetResourceVersion(), object: object}, nil
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
