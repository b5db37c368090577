// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/definition"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/discovery"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/rbac"
)

// New returns base with objects laid over it: an object replaces that of the
// same kind, namespace and name, whatever its version. The objects get what the
// API server would add on their creation, as far as policies look at it: a
// namespace, and for a Namespace its label, finalizer and phase. The kinds of
// CustomResourceDefinitions among them are served; one of them replaces all
// that base knows of the resource. Custom resources are defaulted and pruned when
// they are first read, and where they cannot be that is an error then.
//
// The view owns the objects from now on; New itself does not modify them. Its
// cost does not depend on the size of base. An error is of type Errors.
func New(base cluster.View, objects []*unstructured.Unstructured) (cluster.View, error) {
	if len(objects) == 0 {
		return base, nil
	}
	b := &builder{
		view: &view{
			base:       base,
			definition: map[schema.GroupKind]*definition.Definition{},
			namespaces: map[string]*corev1.Namespace{},
			byKey:      make(map[key]*held, len(objects)),
			byKind:     map[schema.GroupKind][]*held{},
		},
		index: make(map[key]int, len(objects)),
	}
	sound := b.inspect(objects)
	b.define(objects, sound)
	for i, obj := range objects {
		if sound[i] {
			b.add(i, obj)
		}
	}
	if len(b.errs) > 0 {
		slices.SortStableFunc(b.errs, func(x, y *ObjectError) int { return x.Index - y.Index })
		return nil, b.errs
	}
	for kind, list := range b.byKind {
		slices.SortFunc(list, func(a, b *held) int { return compare(a.given, b.given) })
		if kind.Group == rbacv1.GroupName {
			b.rbac = rbac.New(b.view)
		}
	}
	return b.view, nil
}

type builder struct {
	*view
	index map[key]int
	errs  Errors
	// broken says that a CustomResourceDefinition is unusable: kinds that are
	// not known may be those that it defines, and are not reported too.
	broken bool
}

// inspect says which objects are well enough formed to be looked at.
func (b *builder) inspect(objects []*unstructured.Unstructured) []bool {
	sound := make([]bool, len(objects))
	for i, obj := range objects {
		errs := inspect(obj)
		b.errs.add(i, errs...)
		sound[i] = len(errs) == 0
		b.broken = b.broken || !sound[i] && obj != nil && obj.GetKind() == definition.Kind.Kind
	}
	return sound
}

// define makes the kinds of the CustomResourceDefinitions known.
func (b *builder) define(objects []*unstructured.Unstructured, sound []bool) {
	var resources []discovery.Resource
	owner := map[schema.GroupKind]string{}
	for i, obj := range objects {
		if !sound[i] || obj.GroupVersionKind() != definition.Kind {
			continue
		}
		d, errs := definition.New(obj)
		if len(errs) == 0 {
			errs = b.conflicts(d, owner)
		}
		if len(errs) > 0 {
			b.errs.add(i, errs...)
			b.broken = true
			sound[i] = false
			continue
		}
		owner[d.Kind()] = obj.GetName()
		b.definition[d.Kind()] = d
		resources = append(resources, d.Resources()...)
	}
	b.customs = discovery.NewTable(resources)
	b.mapper = b.base.Mapper()
	if len(resources) > 0 {
		b.mapper = b.customs.Over(b.mapper)
	}
}

// add files one object under its kind.
func (b *builder) add(i int, obj *unstructured.Unstructured) {
	kind := obj.GroupVersionKind()
	mapping, err := b.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		if unknown := b.unknownKind(kind, err); unknown.Type != field.ErrorTypeNotFound || !b.broken {
			b.errs.add(i, unknown)
		}
		return
	}
	obj = complete(obj, mapping)
	k := keyOf(obj)
	if first, twice := b.index[k]; twice {
		err := field.Duplicate(field.NewPath("metadata", "name"), k.path())
		err.Detail = kind.Kind + " is given twice; keep one of them"
		b.errs = append(b.errs, &ObjectError{Index: i, SameAs: first, Err: err})
		return
	}
	if kind == namespaceKind {
		namespace, err := toNamespace(obj)
		if err != nil {
			b.errs.add(i, err)
			return
		}
		b.namespaces[namespace.Name] = namespace
	}
	b.index[k] = i
	one := &held{given: obj}
	b.byKey[k] = one
	b.byKind[k.kind] = append(b.byKind[k.kind], one)
}

// unknownKind says what to do about a kind that cannot be mapped.
func (b *builder) unknownKind(kind schema.GroupVersionKind, err error) *field.Error {
	if !meta.IsNoMatchError(err) {
		return field.InternalError(field.NewPath("kind"), err)
	}
	mappings, err := b.mapper.RESTMappings(kind.GroupKind())
	if err != nil {
		unknown := field.NotFound(field.NewPath("kind"), kind.Kind)
		unknown.Detail = "no such kind in " + kind.GroupVersion().String() + "; add its CustomResourceDefinition"
		return unknown
	}
	var served []string
	for _, mapping := range mappings {
		served = append(served, mapping.GroupVersionKind.GroupVersion().String())
	}
	return field.NotSupported(field.NewPath("apiVersion"), kind.GroupVersion().String(), served)
}
