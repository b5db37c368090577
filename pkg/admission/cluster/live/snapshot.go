// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/discovery"
)

// snapshot is which kinds a cluster serves at one time. It is immutable.
type snapshot struct {
	read      bool // false for the one before the first
	order     []schema.GroupVersion
	resources map[schema.GroupVersion][]discovery.Resource
	// failed are the group versions of which the API server could never tell, and why.
	failed      map[schema.GroupVersion]error
	definitions map[schema.GroupKind]*defined
	// documents are where the schemas are; nil when that is not known.
	documents map[schema.GroupVersion]openapi.GroupVersionWithContext

	table *discovery.Table
}

// discovered is what the API server says.
type discovered struct {
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
	failed map[schema.GroupVersion]error
	// documents are nil when they could not be read.
	documents map[schema.GroupVersion]openapi.GroupVersionWithContext
}

// newSnapshot returns what the API server has told, and of what it could not tell now
// what it told before.
func newSnapshot(now discovered, definitions []*defined, previous *snapshot) *snapshot {
	s := &snapshot{
		read:        true,
		resources:   map[schema.GroupVersion][]discovery.Resource{},
		failed:      map[schema.GroupVersion]error{},
		definitions: map[schema.GroupKind]*defined{},
		documents:   now.documents,
	}
	if s.documents == nil {
		s.documents = previous.documents
	}
	for _, list := range now.lists {
		if gv, err := schema.ParseGroupVersion(list.GroupVersion); err == nil {
			s.resources[gv] = resourcesOf(gv, list.APIResources)
		}
	}
	for gv, err := range now.failed {
		if known, found := previous.resources[gv]; found {
			s.resources[gv] = known
		} else {
			s.failed[gv] = err
		}
	}
	for _, d := range definitions {
		if d.definition != nil {
			s.definitions[d.definition.Kind()] = d
			s.keep(d, previous)
		}
	}
	s.order = inOrder(now, s.resources)
	s.table = s.newTable()
	return s
}

// keep adds the versions of a CustomResourceDefinition that are served, that were
// known, and of which the API server tells nothing: when it starts, it tells of them
// last.
func (s *snapshot) keep(d *defined, previous *snapshot) {
	isOf := func(version discovery.Resource) func(discovery.Resource) bool {
		return func(other discovery.Resource) bool { return other.Resource == version.Resource }
	}
	for _, version := range d.definition.Resources() {
		gv := version.Resource.GroupVersion()
		if version.Unserved || slices.ContainsFunc(s.resources[gv], isOf(version)) {
			continue
		}
		if i := slices.IndexFunc(previous.resources[gv], isOf(version)); i >= 0 {
			s.resources[gv] = append(slices.Clip(s.resources[gv]), previous.resources[gv][i])
			delete(s.failed, gv)
		}
	}
}

// inOrder returns the group versions that are known, those that the API server prefers
// first. Of a version that it could not tell of it does not say where it belongs.
func inOrder(now discovered, known map[schema.GroupVersion][]discovery.Resource) []schema.GroupVersion {
	var order []schema.GroupVersion
	take := func(gv schema.GroupVersion) {
		if _, found := known[gv]; found && !slices.Contains(order, gv) {
			order = append(order, gv)
		}
	}
	compare := func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }
	failed := slices.SortedFunc(maps.Keys(now.failed), compare)
	for _, group := range now.groups {
		for _, version := range group.Versions {
			take(schema.GroupVersion{Group: group.Name, Version: version.Version})
		}
		for _, gv := range failed {
			if gv.Group == group.Name {
				take(gv)
			}
		}
	}
	for _, gv := range slices.SortedFunc(maps.Keys(known), compare) {
		take(gv)
	}
	return order
}

func resourcesOf(gv schema.GroupVersion, list []metav1.APIResource) []discovery.Resource {
	var all []discovery.Resource
	index := map[string]int{}
	for _, one := range list {
		if strings.Contains(one.Name, "/") {
			continue
		}
		index[one.Name] = len(all)
		resource := gv.WithResource(one.Name)
		all = append(all, discovery.Resource{
			Resource:     resource,
			Kind:         kindOf(gv, one),
			Singular:     one.SingularName,
			Namespaced:   one.Namespaced,
			Storage:      builtin.Storage(resource.GroupResource()),
			Subresources: map[string]schema.GroupVersionKind{},
		})
	}
	for _, one := range list {
		parent, subresource, isBelow := strings.Cut(one.Name, "/")
		if i, found := index[parent]; isBelow && found {
			all[i].Subresources[subresource] = kindOf(gv, one)
		}
	}
	return all
}

// kindOf returns the kind in which a resource is served, which may be that of another
// group, such as Scale.
func kindOf(gv schema.GroupVersion, resource metav1.APIResource) schema.GroupVersionKind {
	if resource.Version != "" {
		gv = schema.GroupVersion{Group: resource.Group, Version: resource.Version}
	}
	return gv.WithKind(resource.Kind)
}

// newTable returns all resources. The versions of a CustomResourceDefinition are
// equivalents in the order of the definition, those that are not served among them.
func (s *snapshot) newTable() *discovery.Table {
	ranks := map[schema.GroupVersionResource]int{}
	versions := map[schema.GroupResource][]discovery.Resource{}
	for _, d := range s.definitions {
		versions[d.definition.Resource()] = d.definition.Resources()
		for i, version := range versions[d.definition.Resource()] {
			ranks[version.Resource] = i
		}
	}
	var all []discovery.Resource
	served := map[schema.GroupVersionResource]bool{}
	for _, gv := range s.order {
		for _, resource := range s.resources[gv] {
			served[resource.Resource] = true
			resource.Rank = ranks[resource.Resource]
			all = append(all, resource)
		}
	}
	for _, list := range versions {
		for _, version := range list {
			if !served[version.Resource] {
				version.Unserved, version.Rank = true, ranks[version.Resource]
				all = append(all, version)
			}
		}
	}
	return discovery.NewTable(all)
}

// equal says whether nothing can be told from s that cannot be told from other.
func (s *snapshot) equal(other *snapshot) bool {
	return s.read == other.read && len(s.changedGroups(other)) == 0 && slices.Equal(s.order, other.order)
}

// changedGroups returns the groups of which s and other tell different things, sorted.
func (s *snapshot) changedGroups(other *snapshot) []string {
	changed := map[string]bool{}
	for _, pair := range [][2]*snapshot{{s, other}, {other, s}} {
		a, b := pair[0], pair[1]
		for gv, resources := range a.resources {
			if known, found := b.resources[gv]; !found || !reflect.DeepEqual(known, resources) {
				changed[gv.Group] = true
			}
		}
		for gv := range a.failed {
			if _, failed := b.failed[gv]; !failed {
				changed[gv.Group] = true
			}
		}
		for gv, document := range a.documents {
			if known, found := b.documents[gv]; !found || known.ServerRelativeURL() != document.ServerRelativeURL() {
				changed[gv.Group] = true
			}
		}
		for kind, d := range a.definitions {
			if known, found := b.definitions[kind]; !found || !known.same(d) {
				changed[kind.Group] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// unknown returns why it is not known whether kinds of a group are served, or nil. No
// group stands for all of them, and no versions for all of the group.
func (s *snapshot) unknown(group string, versions ...string) error {
	versions = slices.DeleteFunc(slices.Clone(versions), func(version string) bool { return version == "" })
	for gv, err := range s.failed {
		if (group == "" || group == gv.Group) && (len(versions) == 0 || slices.Contains(versions, gv.Version)) {
			return fmt.Errorf("the API server of the cluster cannot tell which resources %s has: %w", gv, err)
		}
	}
	return nil
}
