// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery answers which resources a cluster has: how kinds map to
// resources, and which resources serve the same objects. It holds no objects
// and does not ask a server.
package discovery

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// Resource is one version of a resource.
type Resource struct {
	Resource   schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Singular   string // lower-case Kind when empty
	Namespaced bool
	// Unserved keeps the resource from being mapped. It still counts as an
	// equivalent, as apiextensions-apiserver registers the versions of a
	// CustomResourceDefinition whether or not they are served.
	Unserved bool
	// Storage is the resource with which this one shares its objects. When
	// empty, only other versions of this one do.
	Storage schema.GroupResource
	// Rank is the place of the resource among its equivalents. Those of the same rank
	// keep the order in which they are given.
	Rank int
	// Subresources are the kinds of the subresources, by name.
	Subresources map[string]schema.GroupVersionKind
}

func (r *Resource) storage() schema.GroupResource {
	if r.Storage.Empty() {
		return r.Resource.GroupResource()
	}
	return r.Storage
}

func (r *Resource) kindOf(subresource string) schema.GroupVersionKind {
	if subresource == "" {
		return r.Kind
	}
	return r.Subresources[subresource]
}

// Table is a set of resources. It is immutable and a meta.RESTMapper.
type Table struct {
	byKind     map[schema.GroupKind][]*Resource
	byName     map[string][]*Resource // plural and singular names, served only
	byResource map[schema.GroupResource][]*Resource
	byStorage  map[schema.GroupResource][]*Resource
}

// NewTable returns a table of the given resources, the preferred ones first.
// The table owns the slice from now on.
func NewTable(resources []Resource) *Table {
	t := &Table{
		byKind:     map[schema.GroupKind][]*Resource{},
		byName:     map[string][]*Resource{},
		byResource: map[schema.GroupResource][]*Resource{},
		byStorage:  map[schema.GroupResource][]*Resource{},
	}
	for i := range resources {
		r := &resources[i]
		if r.Singular == "" {
			r.Singular = strings.ToLower(r.Kind.Kind)
		}
		group := r.Resource.GroupResource()
		t.byResource[group] = append(t.byResource[group], r)
		t.byStorage[r.storage()] = append(t.byStorage[r.storage()], r)
		if r.Unserved {
			continue
		}
		t.byKind[r.Kind.GroupKind()] = append(t.byKind[r.Kind.GroupKind()], r)
		t.byName[r.Resource.Resource] = append(t.byName[r.Resource.Resource], r)
		if r.Singular != r.Resource.Resource {
			t.byName[r.Singular] = append(t.byName[r.Singular], r)
		}
	}
	for _, same := range t.byStorage {
		slices.SortStableFunc(same, func(a, b *Resource) int { return cmp.Compare(a.Rank, b.Rank) })
	}
	return t
}

// HasResource says whether any version of resource is in the table.
func (t *Table) HasResource(resource schema.GroupResource) bool {
	return len(t.byResource[resource]) > 0
}

// HasKind says whether any version of kind is served.
func (t *Table) HasKind(kind schema.GroupKind) bool {
	return len(t.byKind[kind]) > 0
}

// Equivalents returns the resources other than resource that serve the same
// objects at subresource, by rank. The rules are
// those of the EquivalentResourceRegistry in k8s.io/apimachinery/pkg/runtime.
func (t *Table) Equivalents(resource schema.GroupVersionResource, subresource string) []cluster.Equivalent {
	known := t.byResource[resource.GroupResource()]
	if len(known) == 0 {
		return nil
	}
	var found []cluster.Equivalent
	for _, r := range t.byStorage[known[0].storage()] {
		kind := r.kindOf(subresource)
		if kind.Empty() || r.Resource == resource {
			continue
		}
		found = append(found, cluster.Equivalent{Resource: r.Resource, Kind: kind})
	}
	return found
}
