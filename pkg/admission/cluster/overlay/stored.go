// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/custom"
)

// maxRead bounds what a layer holds of objects as they are read, beside those that
// it was given: definitions multiply what they say with the objects, by defaults
// and by versions.
const maxRead = 256 << 20

// room is what is left of maxRead. The zero value is all of it.
type room struct{ taken atomic.Int64 }

func (r *room) take(bytes int) error {
	if r.taken.Add(int64(bytes)) <= maxRead {
		return nil
	}
	r.give(bytes)
	return fmt.Errorf("the objects take up more than %d MiB with the defaults and in the versions of their CustomResourceDefinitions; use smaller defaults, or fewer objects or versions", maxRead>>20)
}

func (r *room) give(bytes int) { r.taken.Add(-int64(bytes)) }

// maxRedefined bounds the objects of a base that a layer remembers as it reads them.
const maxRedefined = 10_000

// redefined are the objects of a base that definitions of a layer make other ones of.
// The base may change while the layer lives: of each object only its last state is
// remembered. The zero value is empty.
type redefined struct {
	mu    sync.Mutex
	byKey map[key]*held
}

// of returns an object of the base as the layer holds it, and the same one as long as
// the base returns the same one.
func (r *redefined) of(obj *unstructured.Unstructured, room *room) *held {
	k := keyOf(obj)
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byKey[k]
	if known != nil && known.given == obj {
		return known
	}
	if known != nil {
		known.forget(room)
	}
	if r.byKey == nil || len(r.byKey) >= maxRedefined {
		for _, one := range r.byKey {
			one.forget(room)
		}
		r.byKey = map[key]*held{}
	}
	one := &held{given: obj}
	r.byKey[k] = one
	return one
}

// held is an object that is read through a layer. What it is in a version is found
// out when that is first asked for, and kept: there are few versions of a kind.
type held struct {
	given *unstructured.Unstructured
	read  atomic.Pointer[reading]
}

// forget gives back what the readings so far take. Who asks meanwhile may take some
// that nobody gives back: that is at most one reading for each object that changes
// while it is read.
func (h *held) forget(room *room) {
	for r := h.read.Swap(nil); r != nil; r = r.others {
		room.give(r.size)
	}
}

// reading is an object as it is read in one version, and the other readings.
type reading struct {
	kind   schema.GroupVersionKind
	object *unstructured.Unstructured
	size   int // that it takes up of the room
	others *reading
}

func (r *reading) in(kind schema.GroupVersionKind) *unstructured.Unstructured {
	for ; r != nil; r = r.others {
		if r.kind == kind {
			return r.object
		}
	}
	return nil
}

// in returns the object in a version of its kind, and the same one each time: the
// first that view has made. An error is not kept.
func (h *held) in(ctx context.Context, kind schema.GroupVersionKind, view *view) (*unstructured.Unstructured, error) {
	known := h.read.Load()
	if object := known.in(kind); object != nil {
		return object, nil
	}
	if err := ctx.Err(); err != nil { // there may be very many objects
		return nil, err
	}
	object, err := view.Stored(h.given, kind)
	if err != nil {
		return nil, err
	}
	size := 0
	if object != h.given {
		size = custom.Size(object.Object)
	}
	if err := view.room.take(size); err != nil {
		return nil, err
	}
	for !h.read.CompareAndSwap(known, &reading{kind: kind, object: object, size: size, others: known}) {
		known = h.read.Load()
		if first := known.in(kind); first != nil {
			view.room.give(size)
			return first, nil
		}
	}
	return object, nil
}
