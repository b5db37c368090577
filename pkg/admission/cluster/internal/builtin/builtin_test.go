// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
)

//go:embed testdata/kube-apiserver-1.36.txt
var served string

// TestTable compares the table with the discovery documents of kube-apiserver.
func TestTable(t *testing.T) {
	want := map[schema.GroupKind]int{}
	for line := range strings.Lines(served) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var groupVersion, plural, singular, kind, scope string
		if _, err := fmt.Sscan(line, &groupVersion, &plural, &singular, &kind, &scope); err != nil {
			t.Fatal(err)
		}
		gvk := schema.FromAPIVersionAndKind(groupVersion, kind)
		want[gvk.GroupKind()]++
		mapping, err := builtin.Table().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := mapping.Resource; got != gvk.GroupVersion().WithResource(plural) {
			t.Errorf("%v: got resource %v, want %s", gvk, got, plural)
		}
		if got := mapping.Scope.Name() == meta.RESTScopeNameNamespace; got != (scope == "Namespaced") {
			t.Errorf("%v: got namespaced %t, want %s", gvk, got, scope)
		}
		if got, err := builtin.Table().KindFor(gvk.GroupVersion().WithResource(singular)); err != nil || got != gvk {
			t.Errorf("%s: got %v, %v, want %v", singular, got, err, gvk)
		}
	}
	for gk, versions := range want {
		if mappings, err := builtin.Table().RESTMappings(gk); err != nil || len(mappings) != versions {
			t.Errorf("%v: got %d versions, %v, want %d", gk, len(mappings), err, versions)
		}
	}
	// Nothing of the scheme is in the table but what is served.
	for gvk := range scheme.Scheme.AllKnownTypes() {
		_, err := builtin.Table().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err == nil && want[gvk.GroupKind()] == 0 {
			t.Errorf("%v is in the table and not served", gvk)
		}
	}
}

// TestLists: what can be listed has a kind of list.
func TestLists(t *testing.T) {
	compared := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if _, err := builtin.Table().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			continue
		}
		want := scheme.Scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if got := cluster.Lists(gvk.GroupKind()); got != want {
			t.Errorf("%v: got %t, want %t", gvk, got, want)
		}
		compared++
	}
	if compared < 60 {
		t.Errorf("%d kinds were compared, want all", compared)
	}
}

func TestUnserved(t *testing.T) {
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "extensions", Version: "v1beta1", Kind: "Deployment"},
		{Group: "apps", Version: "v1beta2", Kind: "Deployment"},
		{Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget"},
		{Group: "batch", Version: "v1beta1", Kind: "CronJob"},
		{Group: "resource.k8s.io", Version: "v1beta2", Kind: "ResourceClaim"},
		{Group: "autoscaling", Version: "v1", Kind: "Scale"},
		{Version: "v1", Kind: "PodExecOptions"},
		{Version: "v1", Kind: "List"},
	} {
		if mapping, err := builtin.Table().RESTMapping(gvk.GroupKind(), gvk.Version); !meta.IsNoMatchError(err) {
			t.Errorf("%v: got %v, %v, want no match", gvk, mapping, err)
		}
	}
}

func TestEquivalents(t *testing.T) {
	autoscalers := schema.GroupVersionResource{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	newEvents := schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	autoscaler := cluster.Equivalent{
		Resource: schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
		Kind:     schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	}
	tests := []struct {
		resource    schema.GroupVersionResource
		subresource string
		want        []cluster.Equivalent
	}{
		{resource: autoscalers, want: []cluster.Equivalent{autoscaler}},
		{resource: autoscalers, subresource: "status", want: []cluster.Equivalent{autoscaler}},
		{resource: autoscalers, subresource: "scale"},
		{resource: events, want: []cluster.Equivalent{{Resource: newEvents, Kind: schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}}}},
		{resource: newEvents, want: []cluster.Equivalent{{Resource: events, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Event"}}}},
		{resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}},
		{resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, subresource: "scale"},
		{resource: schema.GroupVersionResource{Group: "extensions", Version: "v1beta1", Resource: "deployments"}},
		{resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}},
	}
	for _, test := range tests {
		if got := builtin.Table().Equivalents(test.resource, test.subresource); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%v/%s: got %v, want %v", test.resource, test.subresource, got, test.want)
		}
	}
	// No two resources of one group and version serve the same objects.
	for line := range strings.Lines(served) {
		if fields := strings.Fields(line); fields[0] != "#" {
			gv := schema.FromAPIVersionAndKind(fields[0], "").GroupVersion()
			known := []string{"horizontalpodautoscalers", "events"}
			if got := builtin.Table().Equivalents(gv.WithResource(fields[1]), ""); len(got) > 0 && !slices.Contains(known, fields[1]) {
				t.Errorf("%s: got unexpected equivalents %v", line, got)
			}
		}
	}
}
