// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/discovery"
)

func resource(group, version, plural, kind string) discovery.Resource {
	return discovery.Resource{
		Resource: schema.GroupVersionResource{Group: group, Version: version, Resource: plural},
		Kind:     schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
	}
}

func unserved(r discovery.Resource) discovery.Resource {
	r.Unserved = true
	return r
}

func base() *discovery.Table {
	return discovery.NewTable([]discovery.Resource{
		resource("a.example", "v2", "gadgets", "Gadget"),
		resource("a.example", "v1", "gadgets", "Gadget"),
		resource("b.example", "v1", "gadgets", "Gadget"),
		resource("b.example", "v1", "sheep", "Sheep"),
		unserved(resource("b.example", "v0", "sheep", "Sheep")),
	})
}

// over replaces a.example gadgets: another kind, and v1 alone.
func over() meta.RESTMapper {
	return discovery.NewTable([]discovery.Resource{
		resource("a.example", "v1", "gadgets", "Gizmo"),
		resource("c.example", "v1", "gadgets", "Gadget"),
	}).Over(base())
}

func TestRESTMapping(t *testing.T) {
	const none = "no match"
	tests := []struct {
		name          string
		kind          schema.GroupKind
		versions      []string
		base, layered string
	}{
		{name: "preferred version", kind: schema.GroupKind{Group: "a.example", Kind: "Gadget"}, base: "a.example/v2 gadgets", layered: none},
		{name: "empty version", kind: schema.GroupKind{Group: "a.example", Kind: "Gadget"}, versions: []string{""}, base: "a.example/v2 gadgets", layered: none},
		{name: "one version", kind: schema.GroupKind{Group: "a.example", Kind: "Gadget"}, versions: []string{"v1"}, base: "a.example/v1 gadgets", layered: none},
		{name: "first version of several", kind: schema.GroupKind{Group: "a.example", Kind: "Gadget"}, versions: []string{"v3", "v1", "v2"}, base: "a.example/v1 gadgets", layered: none},
		{name: "unknown version", kind: schema.GroupKind{Group: "a.example", Kind: "Gadget"}, versions: []string{"v3"}, base: none, layered: none},
		{name: "unserved version", kind: schema.GroupKind{Group: "b.example", Kind: "Sheep"}, versions: []string{"v0"}, base: none, layered: none},
		{name: "untouched", kind: schema.GroupKind{Group: "b.example", Kind: "Sheep"}, base: "b.example/v1 sheep", layered: "b.example/v1 sheep"},
		{name: "new kind of a replaced resource", kind: schema.GroupKind{Group: "a.example", Kind: "Gizmo"}, base: none, layered: "a.example/v1 gadgets"},
		{name: "new resource", kind: schema.GroupKind{Group: "c.example", Kind: "Gadget"}, versions: []string{"v1"}, base: none, layered: "c.example/v1 gadgets"},
	}
	for _, test := range tests {
		for i, mapper := range []meta.RESTMapper{base(), over()} {
			want := []string{test.base, test.layered}[i]
			t.Run(fmt.Sprint(test.name, " ", i), func(t *testing.T) {
				mapping, err := mapper.RESTMapping(test.kind, test.versions...)
				if want == none {
					if noMatch := (*meta.NoKindMatchError)(nil); !errors.As(err, &noMatch) || noMatch.GroupKind != test.kind {
						t.Errorf("got %v, %v, want a NoKindMatchError for %v", mapping, err, test.kind)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := mapping.Resource.GroupVersion().String() + " " + mapping.Resource.Resource; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
	}
}

func TestResourcesFor(t *testing.T) {
	gvr := func(group, version, name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
	}
	tests := []struct {
		name       string
		mapper     meta.RESTMapper
		partial    schema.GroupVersionResource
		want       []schema.GroupVersionResource
		kinds      []string
		singularOf string
	}{
		{
			name: "by name", mapper: base(), partial: gvr("", "", "gadgets"),
			want:  []schema.GroupVersionResource{gvr("a.example", "v2", "gadgets"), gvr("a.example", "v1", "gadgets"), gvr("b.example", "v1", "gadgets")},
			kinds: []string{"Gadget", "Gadget", "Gadget"},
		},
		{name: "by singular name", mapper: base(), partial: gvr("b.example", "", "Gadget"), want: []schema.GroupVersionResource{gvr("b.example", "v1", "gadgets")}, kinds: []string{"Gadget"}},
		{name: "plural is singular", mapper: base(), partial: gvr("", "", "sheep"), want: []schema.GroupVersionResource{gvr("b.example", "v1", "sheep")}, kinds: []string{"Sheep"}},
		{name: "exact", mapper: base(), partial: gvr("a.example", "v1", "gadgets"), want: []schema.GroupVersionResource{gvr("a.example", "v1", "gadgets")}, kinds: []string{"Gadget"}},
		{name: "unserved", mapper: base(), partial: gvr("b.example", "v0", "sheep")},
		{name: "unknown", mapper: base(), partial: gvr("", "", "widgets")},
		{name: "replaced version", mapper: over(), partial: gvr("a.example", "v2", "gadgets")},
		{
			name: "over by name", mapper: over(), partial: gvr("", "v1", "gadgets"),
			want:  []schema.GroupVersionResource{gvr("b.example", "v1", "gadgets"), gvr("a.example", "v1", "gadgets"), gvr("c.example", "v1", "gadgets")},
			kinds: []string{"Gadget", "Gizmo", "Gadget"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.mapper.ResourcesFor(test.partial)
			kinds, kindErr := test.mapper.KindsFor(test.partial)
			if len(test.want) == 0 {
				if !meta.IsNoMatchError(err) || !meta.IsNoMatchError(kindErr) {
					t.Errorf("got %v, %v, %v, %v, want no match", got, err, kinds, kindErr)
				}
				return
			}
			if err != nil || kindErr != nil {
				t.Fatal(err, kindErr)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got resources %v, want %v", got, test.want)
			}
			for i, kind := range kinds {
				if kind.GroupVersion() != got[i].GroupVersion() || kind.Kind != test.kinds[i] {
					t.Errorf("got kind %v for %v, want %s", kind, got[i], test.kinds[i])
				}
			}
			if one, err := test.mapper.ResourceFor(test.partial); err != nil || one != test.want[0] {
				t.Errorf("got resource %v, %v, want %v", one, err, test.want[0])
			}
			if one, err := test.mapper.KindFor(test.partial); err != nil || one != kinds[0] {
				t.Errorf("got kind %v, %v, want %v", one, err, kinds[0])
			}
		})
	}
}

func TestResourceSingularizer(t *testing.T) {
	mapper := discovery.NewTable([]discovery.Resource{resource("d.example", "v1", "oxen", "Ox")}).Over(base())
	for plural, want := range map[string]string{"gadgets": "gadget", "oxen": "ox", "sheep": "sheep"} {
		if got, err := mapper.ResourceSingularizer(plural); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", plural, got, err, want)
		}
	}
	if got, err := mapper.ResourceSingularizer("widgets"); !meta.IsNoMatchError(err) || got != "widgets" {
		t.Errorf("got %s, %v, want no match and the name itself", got, err)
	}
}
