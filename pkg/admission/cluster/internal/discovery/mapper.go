// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var _ meta.RESTMapper = (*Table)(nil)

// RESTMapping returns the preferred mapping of kind, or that of the first of
// versions that is served. The error is a meta.NoKindMatchError.
func (t *Table) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mappings, err := t.RESTMappings(kind, versions...)
	if err != nil {
		return nil, err
	}
	return mappings[0], nil
}

// RESTMappings returns all mappings of kind, or those of the given versions in
// their order. Empty versions are passed over, as meta.DefaultRESTMapper does.
func (t *Table) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	versions = slices.DeleteFunc(slices.Clone(versions), func(version string) bool { return version == "" })
	var found []*meta.RESTMapping
	if len(versions) == 0 {
		for _, r := range t.byKind[kind] {
			found = append(found, r.mapping())
		}
	}
	for _, version := range versions {
		for _, r := range t.byKind[kind] {
			if r.Kind.Version == version {
				found = append(found, r.mapping())
			}
		}
	}
	if len(found) == 0 {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return found, nil
}

func (r *Resource) mapping() *meta.RESTMapping {
	scope := meta.RESTScopeRoot
	if r.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{Resource: r.Resource, GroupVersionKind: r.Kind, Scope: scope}
}

// match returns the served resources that the plural or singular name, group
// and version of partial fit; an empty group or version fits all.
func (t *Table) match(partial schema.GroupVersionResource) []*Resource {
	var found []*Resource
	for _, r := range t.byName[strings.ToLower(partial.Resource)] {
		if (partial.Group == "" || partial.Group == r.Resource.Group) &&
			(partial.Version == "" || partial.Version == r.Resource.Version) {
			found = append(found, r)
		}
	}
	return found
}

// ResourcesFor returns the served resources that fit partial, the preferred
// one first. The name may be singular; a group is never matched by its prefix.
func (t *Table) ResourcesFor(partial schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	var found []schema.GroupVersionResource
	for _, r := range t.match(partial) {
		found = append(found, r.Resource)
	}
	if len(found) == 0 {
		return nil, &meta.NoResourceMatchError{PartialResource: partial}
	}
	return found, nil
}

// ResourceFor returns the preferred resource that fits partial.
func (t *Table) ResourceFor(partial schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return first(t.ResourcesFor(partial))
}

// KindsFor returns the kinds of the resources that fit partial, the preferred
// one first.
func (t *Table) KindsFor(partial schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	var found []schema.GroupVersionKind
	for _, r := range t.match(partial) {
		found = append(found, r.Kind)
	}
	if len(found) == 0 {
		return nil, &meta.NoResourceMatchError{PartialResource: partial}
	}
	return found, nil
}

// KindFor returns the kind of the preferred resource that fits partial.
func (t *Table) KindFor(partial schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return first(t.KindsFor(partial))
}

// ResourceSingularizer returns the singular name of a resource.
func (t *Table) ResourceSingularizer(resource string) (string, error) {
	found := t.match(schema.GroupVersionResource{Resource: resource})
	if len(found) == 0 {
		return resource, &meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Resource: resource}}
	}
	return found[0].Singular, nil
}

func first[T any](all []T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}
