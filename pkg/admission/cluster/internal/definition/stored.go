// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/custom"
)

// Stored returns obj as it is read in a version from an API server to which it
// has been given in its own. In between stands the version of storage: the
// storage codec of custom resources, crdConversionRESTOptionsGetter in
// k8s.io/apiextensions-apiserver/pkg/apiserver, defaults what it decodes, there
// and on the way in, and prunes what it converts. So an object has no default of
// the version in which it is read, unless that is one of the two others, and
// loses what storage does not know.
//
// A webhook is not called: what it would make of the object is not known, and so
// the object stays in its own version.
func (d *Definition) Stored(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	from := obj.GroupVersionKind()
	if from != to {
		if err := d.convertible(from, to); err != nil {
			return nil, err
		}
	}
	stations := []station{{version: from.Version, defaults: true}}
	if d.spec.Conversion.Strategy != webhookStrategy {
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
func (d *Definition) pass(fields map[string]any, stations []station) (map[string]any, error) {
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
