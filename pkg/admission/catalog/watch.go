// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
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
	// that was stored at first.
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
		changes, err := inbox.take(convert)
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, changes); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-inbox.filled:
		}
	}
}

// know takes from the sources what an empty object is.
func (c *Catalog) know(sources []Source) {
	c.writing.Lock()
	defer c.writing.Unlock()
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
	pending map[policy.ID]apiruntime.Object
	broken  error
}

func newInbox() *inbox {
	return &inbox{filled: make(chan struct{}, 1), pending: map[policy.ID]apiruntime.Object{}}
}

func (in *inbox) handler(kind string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { in.put(kind, obj, false) },
		UpdateFunc: func(_, obj any) { in.put(kind, obj, false) },
		DeleteFunc: func(obj any) { in.put(kind, obj, true) },
	}
}

func (in *inbox) put(kind string, event any, deleted bool) {
	id, obj, err := read(kind, event)
	if deleted {
		obj = nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.broken = errors.Join(in.broken, err)
	if err == nil {
		in.pending[id] = obj
	}
	select {
	case in.filled <- struct{}{}:
	default: // the reader will see this change too
	}
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

// take empties the inbox.
func (in *inbox) take(convert Convert) ([]Change, error) {
	in.mu.Lock()
	pending, broken := in.pending, in.broken
	in.pending = map[policy.ID]apiruntime.Object{}
	in.mu.Unlock()
	if broken != nil {
		return nil, broken
	}
	changes := make([]Change, 0, len(pending))
	for id, served := range pending {
		change := Change{ID: id}
		if served != nil {
			change.Object, change.Damage = contain(convert, served)
			change.Served = served
		}
		changes = append(changes, change)
	}
	return changes, nil
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
