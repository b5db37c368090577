// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// Informer tells of the stored objects of one kind.
type Informer interface {
	// AddEventHandler tells handler of all objects, and from then on of all changes
	// in their order. The registration says when the handler has been told of all
	// that was stored at first. An object that is deleted has the resource version
	// of its deletion. An informer that knows up to which version it has told of all
	// changes calls Reached of a handler that has it; see Enforced.
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// Source is where the catalog hears of one stored kind.
type Source struct {
	Kind     string
	Informer Informer
	// New makes an empty internal object. It stands for one that cannot be read.
	New func() apiruntime.Object
}

// Convert turns a served object into an internal one. It fails for an object that
// cannot be read, and may still return what can be read of it.
type Convert func(served apiruntime.Object) (internal apiruntime.Object, err error)

// Run keeps the catalog in step with the sources until ctx ends. The first set
// is put in force when all of them have been read completely; from then on a
// change is in force as soon as it is compiled, and changes that arrive
// meanwhile are compiled together. The caller starts the informers.
//
// It fails when it cannot follow any more. No set is in force then: no answer is
// better than one by policies that were changed since.
func (c *Catalog) Run(ctx context.Context, sources []Source, convert Convert) error {
	err := c.follow(ctx, sources, convert)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = err
		c.set.Store(nil)
	}
	return err
}

func (c *Catalog) follow(ctx context.Context, sources []Source, convert Convert) error {
	inbox := newInbox()
	synced := make([]cache.InformerSynced, 0, len(sources))
	c.know(sources)
	for _, source := range sources {
		registration, err := source.Informer.AddEventHandler(inbox.handler(source.Kind))
		if err != nil {
			return fmt.Errorf("watching %s: %w", source.Kind, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil // ctx has ended
	}
	for {
		changes, reached, err := inbox.take(convert)
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, changes); err != nil {
			return err
		}
		c.advance(reached)
		select {
		case <-ctx.Done():
			return nil
		case <-inbox.filled:
		}
	}
}

// know takes from the sources how many there are, and what an empty object is.
func (c *Catalog) know(sources []Source) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followed = len(sources)
	for _, source := range sources {
		if source.New != nil {
			c.empty[source.Kind] = source.New
		}
	}
}

// inbox holds the latest state of each object that has changed and is not in
// force yet. Its size is bounded by the number of stored objects.
type inbox struct {
	filled chan struct{}

	mu      sync.Mutex
	pending map[policy.ID]news
	reached map[string]string // up to which version it was told of all changes, by kind
	broken  error
}

// news is the last of an object.
type news struct {
	object  apiruntime.Object // nil when it is deleted
	deleted string            // by which version
}

func newInbox() *inbox {
	return &inbox{filled: make(chan struct{}, 1), pending: map[policy.ID]news{}, reached: map[string]string{}}
}

func (in *inbox) handler(kind string) cache.ResourceEventHandler {
	return handler{inbox: in, kind: kind, ResourceEventHandlerFuncs: cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { in.put(kind, obj, false) },
		UpdateFunc: func(_, obj any) { in.put(kind, obj, false) },
		DeleteFunc: func(obj any) { in.put(kind, obj, true) },
	}}
}

// handler puts what it hears of a kind into an inbox.
type handler struct {
	cache.ResourceEventHandlerFuncs
	inbox *inbox
	kind  string
}

// Reached says that the handler has been told of all changes up to a resource version.
func (h handler) Reached(resourceVersion string) {
	h.inbox.mu.Lock()
	defer h.inbox.mu.Unlock()
	h.inbox.reached[h.kind] = resourceVersion
	h.inbox.fill()
}

func (in *inbox) put(kind string, event any, deleted bool) {
	id, obj, err := read(kind, event)
	last := news{object: obj}
	if deleted {
		last = news{deleted: versionOf(obj)}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.broken = errors.Join(in.broken, err)
	if err == nil {
		in.pending[id] = last
	}
	in.fill()
}

func (in *inbox) fill() {
	select {
	case in.filled <- struct{}{}:
	default: // the reader will see this change too
	}
}

// versionOf returns the resource version of an object that may be nil.
func versionOf(obj apiruntime.Object) string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return accessor.GetResourceVersion()
}

// read returns the object of an event. Of one whose deletion was missed, the
// name is certain and the object may be gone.
func read(kind string, event any) (policy.ID, apiruntime.Object, error) {
	if tombstone, ok := event.(cache.DeletedFinalStateUnknown); ok {
		namespace, name, err := cache.SplitMetaNamespaceKey(tombstone.Key)
		return policy.ID{Kind: kind, Namespace: namespace, Name: name}, nil, err
	}
	obj, ok := event.(apiruntime.Object)
	accessor, err := meta.Accessor(event)
	if !ok || err != nil {
		return policy.ID{}, nil, fmt.Errorf("%s: unexpected %T in the informer", kind, event)
	}
	return policy.ID{Kind: kind, Namespace: accessor.GetNamespace(), Name: accessor.GetName()}, obj, nil
}

// take empties the inbox, and says up to which versions all changes were in it, or
// were taken before.
func (in *inbox) take(convert Convert) (changes []Change, reached map[string]string, err error) {
	in.mu.Lock()
	pending, reached, broken := in.pending, maps.Clone(in.reached), in.broken
	in.pending = map[policy.ID]news{}
	in.mu.Unlock()
	if broken != nil {
		return nil, nil, broken
	}
	changes = make([]Change, 0, len(pending))
	for id, last := range pending {
		change := Change{ID: id, Deleted: last.deleted}
		if last.object != nil {
			change.Object, change.Damage = contain(convert, last.object)
			change.Served = last.object
		}
		changes = append(changes, change)
	}
	return changes, reached, nil
}

// contain converts an object. A panic is an error of that object, and so is a
// conversion that returns nothing: it must not pass for a deletion.
func contain(convert Convert, served apiruntime.Object) (internal apiruntime.Object, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			internal, err = nil, fmt.Errorf("converting the stored object panicked: %v", cause)
		}
	}()
	internal, err = convert(served)
	if internal == nil && err == nil {
		err = errors.New("converting the stored object has left nothing of it")
	}
	return internal, err
}
