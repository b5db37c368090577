// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overlay lays objects over another view of a cluster, as if they had
// just been applied to it. It does not know where the objects come from, does
// not validate them beyond what it needs, and does not judge RBAC objects
// itself: package rbac does when there are any among those laid over, and else
// the authorizer is that of the view below.
package overlay

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/definition"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/discovery"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/rbac"
)

// view is immutable.
type view struct {
	base       cluster.View
	mapper     meta.RESTMapper
	customs    *discovery.Table // the resources of the definitions laid over
	definition map[schema.GroupKind]*definition.Definition
	namespaces map[string]*corev1.Namespace
	byKey      map[key]*held
	byKind     map[schema.GroupKind][]*held // ordered as Objects returns them
	rbac       *rbac.Evaluator              // nil when the authorizer is that of base
	redefined  redefined
	room       room
}

var _ cluster.View = (*view)(nil)

// key identifies an object in any version of its kind.
type key struct {
	kind            schema.GroupKind
	namespace, name string
}

func keyOf(obj *unstructured.Unstructured) key {
	return key{obj.GroupVersionKind().GroupKind(), obj.GetNamespace(), obj.GetName()}
}

func (v *view) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	if namespace, found := v.namespaces[name]; found {
		return namespace, nil
	}
	return v.base.Namespace(ctx, name)
}

func (v *view) Mapper() meta.RESTMapper { return v.mapper }

// Authorizer returns an evaluator over the objects of this layer and of the base
// when there are RBAC objects in this one. A base that cannot tell stays so: its
// RBAC objects may not be all that decides there.
func (v *view) Authorizer() authorizer.UnconditionalAuthorizer {
	below := v.base.Authorizer()
	if v.rbac == nil || below == nil {
		return below
	}
	return v.rbac
}

func (v *view) Equivalents(resource schema.GroupVersionResource, subresource string) []cluster.Equivalent {
	if v.customs.HasResource(resource.GroupResource()) {
		return v.customs.Equivalents(resource, subresource)
	}
	return v.base.Equivalents(resource, subresource)
}

func (v *view) Convert(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	from := obj.GroupVersionKind()
	if from == to {
		return obj, nil
	}
	if defined, found := v.definition[from.GroupKind()]; found {
		return defined.Convert(obj, to)
	}
	return v.base.Convert(obj, to)
}

// Stored makes the object each time; Objects makes those of this layer once.
func (v *view) Stored(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	if defined, found := v.definition[obj.GroupVersionKind().GroupKind()]; found {
		return defined.Stored(obj, to)
	}
	return v.base.Stored(obj, to)
}

// Schema makes the schema of a CustomResourceDefinition of this layer each time:
// it may be large, and few are ever asked for.
func (v *view) Schema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	if _, err := v.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		if !meta.IsNoMatchError(err) {
			return nil, err
		}
		return nil, fmt.Errorf("%v: %w", kind, resolver.ErrSchemaNotFound)
	}
	if defined, found := v.definition[kind.GroupKind()]; found {
		return defined.Schema(kind.Version)
	}
	return v.base.Schema(kind)
}

func (v *view) Objects(ctx context.Context, selection cluster.Selection) ([]*unstructured.Unstructured, error) {
	mapping, err := selection.Mapping(v.mapper)
	if err != nil {
		return nil, err
	}
	own, err := v.own(ctx, selection)
	if err != nil || selection.Name != "" && len(own) > 0 {
		return own, err
	}
	below, err := v.below(ctx, selection, mapping.Scope)
	if err != nil || len(own) == 0 {
		return below, err
	}
	merged := slices.Concat(own, below)
	slices.SortFunc(merged, compare)
	return merged, nil
}

// own returns the selected objects of this layer.
func (v *view) own(ctx context.Context, selection cluster.Selection) ([]*unstructured.Unstructured, error) {
	kind := selection.Kind.GroupKind()
	var objects []*unstructured.Unstructured
	take := func(one *held) error {
		obj, err := one.in(ctx, selection.Kind, v)
		if err != nil {
			return fmt.Errorf("%s: %w", describe(keyOf(one.given)), err)
		}
		objects = append(objects, obj)
		return nil
	}
	switch {
	case selection.Name != "":
		if one, found := v.byKey[key{kind, selection.Namespace, selection.Name}]; found {
			return objects, take(one)
		}
	case selection.Selector != nil:
		for _, one := range v.byKind[kind] {
			if selects(selection, one.given) {
				if err := take(one); err != nil {
					return nil, err
				}
			}
		}
	}
	return objects, nil
}

// selects says whether an object of the kind is one that the selector of a selection,
// which is there, selects.
func selects(selection cluster.Selection, obj *unstructured.Unstructured) bool {
	return (selection.Namespace == "" || selection.Namespace == obj.GetNamespace()) &&
		selection.Selector.Matches(labels.Set(obj.GetLabels()))
}

// below returns the selected objects of the base that this layer does not
// replace.
func (v *view) below(ctx context.Context, selection cluster.Selection, scope meta.RESTScope) ([]*unstructured.Unstructured, error) {
	asked, there, err := v.askedBelow(selection, scope)
	if err != nil || !there {
		return nil, err
	}
	found, err := v.base.Objects(ctx, asked)
	if err != nil {
		return nil, err
	}
	if len(v.byKind[selection.Kind.GroupKind()]) > 0 {
		found = slices.DeleteFunc(slices.Clone(found), func(obj *unstructured.Unstructured) bool {
			_, replaced := v.byKey[keyOf(obj)]
			return replaced
		})
	}
	if _, redefined := v.definition[selection.Kind.GroupKind()]; !redefined {
		return found, nil
	}
	objects := make([]*unstructured.Unstructured, len(found))
	for i, obj := range found {
		if objects[i], err = v.redefined.of(obj, &v.room).in(ctx, selection.Kind, v); err != nil {
			return nil, fmt.Errorf("%s: %w", describe(keyOf(obj)), err)
		}
	}
	return objects, nil
}

// askedBelow returns the selection with which the base is asked. When there can be
// nothing below, it is not asked at all.
func (v *view) askedBelow(selection cluster.Selection, scope meta.RESTScope) (asked cluster.Selection, there bool, err error) {
	defined, redefined := v.definition[selection.Kind.GroupKind()]
	if !redefined {
		return selection, true, nil
	}
	// The base may have the kind in other versions, or not at all.
	mappings, err := v.base.Mapper().RESTMappings(selection.Kind.GroupKind())
	if meta.IsNoMatchError(err) {
		return selection, false, nil
	}
	if err != nil {
		return selection, false, err
	}
	if mappings[0].Scope.Name() != scope.Name() {
		return selection, false, nil
	}
	selection.Kind = defined.KindBelow(selection.Kind, mappings)
	return selection, true, nil
}

func compare(a, b *unstructured.Unstructured) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

func describe(k key) string { return k.kind.Kind + " " + k.path() }

func (k key) path() string {
	if k.namespace == "" {
		return k.name
	}
	return k.namespace + "/" + k.name
}
