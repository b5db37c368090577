// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

// held is an object that is read through a layer. What it is in a version is found
// out when that is first asked for, and kept: there are few versions of a kind.
type held struct {
	given *unstructured.Unstructured
	read  atomic.Pointer[reading]
}

// reading is an object as it is read in one version, and the other readings.
type reading struct {
	kind   schema.GroupVersionKind
	object *unstructured.Unstructured
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
	for !h.read.CompareAndSwap(known, &reading{kind: kind, object: object, others: known}) {
		known = h.read.Load()
		if first := known.in(kind); first != nil {
			view.room.give(size)
			return first, nil
		}
	}
	return object, nil
}

// stored returns obj as it is read in a version from an API server to which it
// has been given in its own. In between stands the version of storage: the
// storage codec of custom resources, crdConversionRESTOptionsGetter in
// k8s.io/apiextensions-apiserver/pkg/apiserver, defaults what it decodes, there
// and on the way in, and prunes what it converts. So an object has no default of
// the version in which it is read, unless that is one of the two others, and
// loses what storage does not know.
//
// A webhook is not called: what it would make of the object is not known, and so
// the object stays in its own version.
func (d *definition) stored(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	from := obj.GroupVersionKind()
	if from != to {
		if err := d.convertible(from, to); err != nil {
			return nil, err
		}
	}
	stations := []station{{version: from.Version, defaults: true}}
	if d.Spec.Conversion.Strategy != webhookStrategy {
		stations = append(stations, station{version: d.storage(), defaults: true}, station{version: to.Version})
	}
	fields, err := d.pass(obj.Object, stations)
	if err != nil {
		return nil, err
	}
	if from == to && reflect.DeepEqual(fields, obj.Object) {
		return obj, nil
	}
	fields = maps.Clone(fields)
	fields["apiVersion"] = to.GroupVersion().String()
	return &unstructured.Unstructured{Object: fields}, nil
}

// station is a version through which an object passes.
type station struct {
	version  string
	defaults bool // are set there
}

// pass returns what becomes of fields, which it does not modify, on the way
// through some versions. A version without a structural schema changes nothing.
func (d *definition) pass(fields map[string]any, stations []station) (map[string]any, error) {
	isCopy := false
	for i, at := range stations {
		if i > 0 && at.version == stations[i-1].version {
			continue
		}
		s, err := d.structurals[at.version]()
		if err != nil {
			return nil, d.unusable(at.version, err)
		}
		if s == nil {
			continue
		}
		if !isCopy {
			fields, isCopy = runtime.DeepCopyJSON(fields), true
		}
		if err := custom.Prune(fields, s); err != nil {
			return nil, err
		}
		if !at.defaults {
			continue
		}
		if err := custom.Default(fields, s); err != nil {
			return nil, err
		}
	}
	return fields, nil
}
