// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Over returns a mapper that knows the resources of base and those of t. Where
// both know a resource, all that base says of it is hidden, its versions and
// its kind included. The preferred match of a partial resource is that of base.
func (t *Table) Over(base meta.RESTMapper) meta.RESTMapper {
	return &layered{own: t, base: base}
}

type layered struct {
	own  *Table
	base meta.RESTMapper
}

func (l *layered) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return first(l.RESTMappings(kind, versions...))
}

func (l *layered) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	if l.own.HasKind(kind) {
		return l.own.RESTMappings(kind, versions...)
	}
	found, err := l.base.RESTMappings(kind, versions...)
	if err != nil {
		return nil, err
	}
	visible := slices.DeleteFunc(slices.Clone(found), func(mapping *meta.RESTMapping) bool {
		return l.own.HasResource(mapping.Resource.GroupResource())
	})
	if len(visible) == 0 {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return visible, nil
}

func (l *layered) ResourcesFor(partial schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	found, err := l.base.ResourcesFor(partial)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	visible := slices.DeleteFunc(slices.Clone(found), func(resource schema.GroupVersionResource) bool {
		return l.own.HasResource(resource.GroupResource())
	})
	for _, r := range l.own.match(partial) {
		visible = append(visible, r.Resource)
	}
	if len(visible) == 0 {
		return nil, &meta.NoResourceMatchError{PartialResource: partial}
	}
	return visible, nil
}

func (l *layered) ResourceFor(partial schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return first(l.ResourcesFor(partial))
}

func (l *layered) KindsFor(partial schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	resources, err := l.ResourcesFor(partial)
	if err != nil {
		return nil, err
	}
	var found []schema.GroupVersionKind
	for _, resource := range resources {
		mapper := l.base
		if l.own.HasResource(resource.GroupResource()) {
			mapper = l.own
		}
		kind, err := mapper.KindFor(resource)
		if err != nil {
			return nil, err
		}
		found = append(found, kind)
	}
	return found, nil
}

func (l *layered) KindFor(partial schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return first(l.KindsFor(partial))
}

func (l *layered) ResourceSingularizer(resource string) (string, error) {
	singular, err := l.base.ResourceSingularizer(resource)
	if meta.IsNoMatchError(err) {
		return l.own.ResourceSingularizer(resource)
	}
	return singular, err
}
