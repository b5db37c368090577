// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.a.example}
spec:
  group: a.example
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
  - {name: v1, served: true, storage: true, subresources: {status: {}, scale: {specReplicasPath: .spec.replicas}}}
  - {name: v1beta1, served: true, storage: false, subresources: {status: {}}}
  - {name: v1alpha1, served: false, storage: false}
`

var (
	configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	gadget    = schema.GroupVersionKind{Group: "a.example", Version: "v1", Kind: "Gadget"}
	gadgetB   = schema.GroupVersionKind{Group: "a.example", Version: "v1beta1", Kind: "Gadget"}
)

func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func newBase(t *testing.T, text string) cluster.View {
	t.Helper()
	view, err := offline.New(decode(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func newOver(t *testing.T, base cluster.View, text string) cluster.View {
	t.Helper()
	view, err := overlay.New(base, decode(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// names selects and returns "version namespace/name" of each object.
func names(t *testing.T, view cluster.View, selection cluster.Selection) []string {
	t.Helper()
	objects, err := view.Objects(context.Background(), selection)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, obj := range objects {
		found = append(found, strings.TrimSpace(fmt.Sprintf("%s %s/%s %s", obj.GroupVersionKind().Version, obj.GetNamespace(), obj.GetName(), obj.GetLabels()["from"])))
	}
	return found
}

func TestNoObjects(t *testing.T) {
	base := newBase(t, "")
	if got := newOver(t, base, ""); got != base {
		t.Errorf("got %v, want the base itself", got)
	}
}

func TestObjects(t *testing.T) {
	const below = gadgets + `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {from: base, app: x}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {from: base, app: x}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: zoo, labels: {from: base, app: x}}}
---
{apiVersion: a.example/v1, kind: Gadget, metadata: {name: g1, labels: {from: base}}}
---
{apiVersion: a.example/v1beta1, kind: Gadget, metadata: {name: g2, labels: {from: base}}}
`
	const above = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default, labels: {from: over}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {from: over, app: x}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: abc, labels: {from: over, app: x}}}
---
{apiVersion: a.example/v1beta1, kind: Gadget, metadata: {name: g1, labels: {from: over}}}
`
	view := newOver(t, newBase(t, below), above)
	everything := labels.Everything()
	tests := []struct {
		name      string
		selection cluster.Selection
		want      []string
	}{
		{name: "name of base", selection: cluster.Selection{Kind: configMap, Namespace: "default", Name: "b"}, want: []string{"v1 default/b base"}},
		{name: "name replaced", selection: cluster.Selection{Kind: configMap, Namespace: "default", Name: "a"}, want: []string{"v1 default/a over"}},
		{name: "name in another namespace", selection: cluster.Selection{Kind: configMap, Namespace: "zoo", Name: "a"}, want: []string{"v1 zoo/a base"}},
		{name: "no such name", selection: cluster.Selection{Kind: configMap, Namespace: "default", Name: "d"}},
		{name: "name wins over selector", selection: cluster.Selection{Kind: configMap, Namespace: "default", Name: "b", Selector: everything}, want: []string{"v1 default/b base"}},
		{name: "all of a namespace", selection: cluster.Selection{Kind: configMap, Namespace: "default", Selector: everything}, want: []string{"v1 default/a over", "v1 default/b base", "v1 default/c over"}},
		{
			name: "all", selection: cluster.Selection{Kind: configMap, Selector: everything},
			want: []string{"v1 abc/a over", "v1 default/a over", "v1 default/b base", "v1 default/c over", "v1 zoo/a base"},
		},
		{
			name: "a replaced object no longer has its labels", selection: cluster.Selection{Kind: configMap, Selector: labels.SelectorFromSet(labels.Set{"app": "x"})},
			want: []string{"v1 abc/a over", "v1 default/b base", "v1 default/c over", "v1 zoo/a base"},
		},
		{name: "nil selector", selection: cluster.Selection{Kind: configMap, Namespace: "default"}},
		{name: "selector for nothing", selection: cluster.Selection{Kind: configMap, Selector: labels.Nothing()}},
		{name: "custom in v1", selection: cluster.Selection{Kind: gadget, Selector: everything}, want: []string{"v1 default/g1 over", "v1 default/g2 base"}},
		{name: "custom in v1beta1", selection: cluster.Selection{Kind: gadgetB, Namespace: "default", Selector: everything}, want: []string{"v1beta1 default/g1 over", "v1beta1 default/g2 base"}},
		{name: "custom by name, converted", selection: cluster.Selection{Kind: gadget, Namespace: "default", Name: "g1"}, want: []string{"v1 default/g1 over"}},
		{
			name: "namespaces", selection: cluster.Selection{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Selector: everything},
			want: []string{"v1 /default", "v1 /kube-node-lease", "v1 /kube-public", "v1 /kube-system"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := names(t, view, test.selection); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestObjectsErrors(t *testing.T) {
	view := newOver(t, newBase(t, `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: none}`), gadgets)
	tests := []struct {
		name      string
		selection cluster.Selection
		want      string
		noMatch   bool
	}{
		{name: "unknown kind", selection: cluster.Selection{Kind: gadget.GroupVersion().WithKind("Gizmo"), Name: "a"}, want: `no matches for kind "Gizmo" in version "a.example/v1"`, noMatch: true},
		{name: "unserved version", selection: cluster.Selection{Kind: gadget.GroupKind().WithVersion("v1alpha1"), Name: "a"}, want: `no matches for kind "Gadget" in version "a.example/v1alpha1"`, noMatch: true},
		{name: "no version", selection: cluster.Selection{Kind: gadget.GroupKind().WithVersion(""), Name: "a"}, want: `no matches for kind "Gadget" in group "a.example"`, noMatch: true},
		{name: "no kind", want: `no matches for kind "" in group ""`, noMatch: true},
		{name: "no namespace", selection: cluster.Selection{Kind: gadget, Name: "a"}, want: `selecting Gadget "a" needs a namespace`},
		{
			name: "namespace of a cluster-scoped kind", selection: cluster.Selection{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Namespace: "default", Selector: labels.Everything()},
			want: `selecting Node in namespace "default": the kind is cluster-scoped`,
		},
		{
			name: "no conversion", selection: cluster.Selection{Kind: schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, Selector: labels.Everything()},
			want: "HorizontalPodAutoscaler default/a: unable to convert autoscaling/v1, Kind=HorizontalPodAutoscaler to autoscaling/v2, Kind=HorizontalPodAutoscaler: cannot restore struct from: string",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, err := view.Objects(context.Background(), test.selection)
			if err == nil || err.Error() != test.want || meta.IsNoMatchError(err) != test.noMatch {
				t.Errorf("got %v, %v, want error %s", objects, err, test.want)
			}
		})
	}
}

func TestNamespace(t *testing.T) {
	base := newBase(t, `{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {env: test, kubernetes.io/metadata.name: other}}}`)
	view := newOver(t, base, `
{apiVersion: v1, kind: Namespace, metadata: {name: default, namespace: x, labels: {env: prod}, managedFields: [{manager: kubectl}]}, spec: {finalizers: [a/b]}, status: {phase: Terminating}}
`)
	tests := []struct {
		name, text string
	}{
		{"default", "default//map[env:prod kubernetes.io/metadata.name:default]/[a/b]/Terminating"},
		{"team", "team//map[env:test kubernetes.io/metadata.name:team]/[kubernetes]/Active"},
		{"kube-system", "kube-system//map[kubernetes.io/metadata.name:kube-system]/[kubernetes]/Active"},
	}
	for _, test := range tests {
		namespace, err := view.Namespace(context.Background(), test.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s/%s/%v/%v/%s", namespace.Name, namespace.Namespace, namespace.Labels, namespace.Spec.Finalizers, namespace.Status.Phase); got != test.text {
			t.Errorf("got %s, want %s", got, test.text)
		}
		if namespace.Kind != "" || namespace.APIVersion != "" || namespace.ManagedFields != nil {
			t.Errorf("got %+v, %+v, which an informer does not hold", namespace.TypeMeta, namespace.ManagedFields)
		}
	}
	if _, err := view.Namespace(context.Background(), "nowhere"); !apierrors.IsNotFound(err) || err.Error() != `namespaces "nowhere" not found` {
		t.Errorf("got %v, want not found", err)
	}
	before, err := base.Namespace(context.Background(), "default")
	if err != nil || before.Labels["env"] != "" {
		t.Errorf("got %v, %v, want the base as it was", before, err)
	}
}

// TestSecret: policies see data, as in a cluster; stringData is for writing only.
func TestSecret(t *testing.T) {
	view := newBase(t, `
{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: abc, both: new}, data: {both: b2xk, other: eA==}}
---
{apiVersion: v1, kind: Secret, metadata: {name: b}, type: my/own}
`)
	for name, want := range map[string]string{
		"a": "Opaque map[both:bmV3 k:YWJj other:eA==] <nil>",
		"b": "my/own <nil> <nil>",
	} {
		objects, err := view.Objects(t.Context(), cluster.Selection{
			Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Namespace: "default", Name: name,
		})
		if err != nil || len(objects) != 1 {
			t.Fatalf("%s: got %d objects and error %v", name, len(objects), err)
		}
		fields := objects[0].Object
		if got := fmt.Sprint(fields["type"], " ", fields["data"], " ", fields["stringData"]); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestInputIsNotModified(t *testing.T) {
	objects := decode(t, gadgets+`
---
{apiVersion: v1, kind: Namespace, metadata: {name: team}, spec: {}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: a.example/v1beta1, kind: Gadget, metadata: {name: g}}
`)
	var before []*unstructured.Unstructured
	for _, obj := range objects {
		before = append(before, obj.DeepCopy())
	}
	view, err := overlay.New(newBase(t, ""), objects)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(t, view, cluster.Selection{Kind: gadget, Selector: labels.Everything()}); len(got) != 1 {
		t.Errorf("got %v, want one gadget", got)
	}
	if !reflect.DeepEqual(objects, before) {
		t.Errorf("got %v, want %v", objects, before)
	}
}

func TestConvert(t *testing.T) {
	const webhook = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hooks.a.example}
spec:
  group: a.example
  scope: Cluster
  conversion: {strategy: Webhook}
  names: {plural: hooks, kind: Hook}
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v2, served: true, storage: false}
`
	view := newOver(t, newBase(t, gadgets), webhook)
	tests := []struct {
		name, object string
		to           schema.GroupVersionKind
		want         string
	}{
		{name: "none", object: `{apiVersion: a.example/v1, kind: Gadget, spec: {a: 1}}`, to: gadgetB},
		{name: "unserved version", object: `{apiVersion: a.example/v1, kind: Gadget}`, to: gadget.GroupKind().WithVersion("v1alpha1")},
		{
			name: "no such version", object: `{apiVersion: a.example/v1, kind: Gadget}`, to: gadget.GroupKind().WithVersion("v2"),
			want: "unable to convert a.example/v1, Kind=Gadget to a.example/v2, Kind=Gadget: the CustomResourceDefinition of gadgets.a.example has no such versions",
		},
		{
			name: "another kind", object: `{apiVersion: a.example/v1, kind: Gadget}`, to: gadget.GroupVersion().WithKind("Hook"),
			want: "unable to convert a.example/v1, Kind=Gadget to a.example/v1, Kind=Hook: the CustomResourceDefinition of gadgets.a.example has no such versions",
		},
		{
			name: "webhook", object: `{apiVersion: a.example/v1, kind: Hook}`, to: gadget.GroupKind().WithVersion("v2").GroupVersion().WithKind("Hook"),
			want: "unable to convert a.example/v1, Kind=Hook to a.example/v2, Kind=Hook: the conversion webhook is not called; the object that the API server converted is needed",
		},
		{
			name: "built in", object: `{apiVersion: v1, kind: Event}`, to: schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Eve"},
			want: "unable to convert /v1, Kind=Event to events.k8s.io/v1, Kind=Eve: the object that the API server converted is needed",
		},
		{
			name: "unknown", object: `{apiVersion: b.example/v1, kind: Gadget}`, to: gadget,
			want: "unable to convert b.example/v1, Kind=Gadget to a.example/v1, Kind=Gadget: the object that the API server converted is needed",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := decode(t, test.object)[0]
			before := obj.DeepCopy()
			if same, err := view.Convert(obj, obj.GroupVersionKind()); err != nil || same != obj {
				t.Errorf("got %v, %v for its own kind, want the object itself", same, err)
			}
			got, err := view.Convert(obj, test.to)
			if test.want != "" {
				if err == nil || err.Error() != test.want {
					t.Errorf("got %v, %v, want error %s", got, err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := maps.Clone(before.Object)
			want["apiVersion"] = test.to.GroupVersion().String()
			if !reflect.DeepEqual(got.Object, want) || !reflect.DeepEqual(obj, before) {
				t.Errorf("got %v of %v, want %v", got, obj, want)
			}
		})
	}
}

func TestEquivalents(t *testing.T) {
	resource := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "a.example", Version: version, Resource: "gadgets"}
	}
	same := func(versions ...string) []cluster.Equivalent {
		var all []cluster.Equivalent
		for _, version := range versions {
			all = append(all, cluster.Equivalent{Resource: resource(version), Kind: gadget.GroupKind().WithVersion(version)})
		}
		return all
	}
	scale := schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	base := newBase(t, gadgets)
	replaced := newOver(t, base, strings.NewReplacer("v1alpha1", "v2", "served: false", "served: true").Replace(gadgets))
	tests := []struct {
		name        string
		view        cluster.View
		version     string
		subresource string
		want        []cluster.Equivalent
	}{
		{name: "in the order of the definition", view: base, version: "v1alpha1", want: same("v1", "v1beta1")},
		{name: "unserved ones too", view: base, version: "v1", want: same("v1beta1", "v1alpha1")},
		{name: "status", view: base, version: "v1", subresource: "status", want: same("v1beta1")},
		{name: "scale of the version that has it", view: base, version: "v1", subresource: "scale"},
		{name: "scale", view: base, version: "v1beta1", subresource: "scale", want: []cluster.Equivalent{{Resource: resource("v1"), Kind: scale}}},
		{name: "no such subresource", view: base, version: "v1", subresource: "exec"},
		{name: "replaced", view: replaced, version: "v1", want: same("v1beta1", "v2")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.view.Equivalents(resource(test.version), test.subresource); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	if got := replaced.Equivalents(events, ""); len(got) != 1 {
		t.Errorf("got %v, want those of the base", got)
	}
}

// TestReplacedDefinition lays a definition with other versions over objects.
func TestReplacedDefinition(t *testing.T) {
	base := newBase(t, gadgets+"---\n{apiVersion: a.example/v1, kind: Gadget, metadata: {name: old}}")
	other := strings.NewReplacer("name: v1beta1", "name: v2").Replace(gadgets)
	view := newOver(t, base, other+"---\n{apiVersion: a.example/v2, kind: Gadget, metadata: {name: new}}")
	all := cluster.Selection{Kind: gadget.GroupKind().WithVersion("v2"), Selector: labels.Everything()}
	if got, want := names(t, view, all), []string{"v2 default/new", "v2 default/old"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := view.Mapper().RESTMapping(gadgetB.GroupKind(), gadgetB.Version); !meta.IsNoMatchError(err) {
		t.Errorf("got %v, want no match for a version that is gone", err)
	}
	scoped := newOver(t, base, strings.NewReplacer("Namespaced", "Cluster").Replace(gadgets))
	if got := names(t, scoped, cluster.Selection{Kind: gadget, Selector: labels.Everything()}); len(got) > 0 {
		t.Errorf("got %q, want none of the objects of another scope", got)
	}
	fresh := newOver(t, newBase(t, ""), gadgets)
	if got := names(t, fresh, cluster.Selection{Kind: gadget, Selector: labels.Everything()}); len(got) > 0 {
		t.Errorf("got %q, want none", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	view := newOver(t, newBase(t, gadgets), "{apiVersion: a.example/v1, kind: Gadget, metadata: {name: g}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: team}}")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if _, err := view.Objects(context.Background(), cluster.Selection{Kind: gadgetB, Selector: labels.Everything()}); err != nil {
					t.Error(err)
				}
				if _, err := view.Namespace(context.Background(), "team"); err != nil {
					t.Error(err)
				}
				if _, err := view.Mapper().KindFor(schema.GroupVersionResource{Resource: "gadgets"}); err != nil {
					t.Error(err)
				}
				view.Equivalents(schema.GroupVersionResource{Group: "a.example", Version: "v1", Resource: "gadgets"}, "")
				if _, err := overlay.New(view, []*unstructured.Unstructured{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestNewDoesNotDependOnBase compares the work of New over a small and a large
// base.
func TestNewDoesNotDependOnBase(t *testing.T) {
	objects := decode(t, gadgets+"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	cost := func(size int) float64 {
		var below []*unstructured.Unstructured
		for i := range size {
			obj := &unstructured.Unstructured{Object: map[string]any{}}
			obj.SetGroupVersionKind(configMap)
			obj.SetName(fmt.Sprint("c", i))
			below = append(below, obj)
		}
		base, err := offline.New(below)
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(20, func() {
			if _, err := overlay.New(base, objects); err != nil {
				t.Fatal(err)
			}
		})
	}
	if small, large := cost(1), cost(5000); large > small+5 {
		t.Errorf("got %v allocations over 5000 objects and %v over one, want the same", large, small)
	}
}

// TestIdentity: every object has a uid and a creationTimestamp, the same each
// time, unless it brings its own.
func TestIdentity(t *testing.T) {
	base, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	given := func() []*unstructured.Unstructured {
		one := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "default"}}}
		two := one.DeepCopy()
		two.SetName("two")
		own := one.DeepCopy()
		own.SetName("own")
		own.SetUID("mine")
		own.SetCreationTimestamp(metav1.Unix(1_000_000_000, 0))
		return []*unstructured.Unstructured{one, two, own}
	}
	identities := func() map[string]string {
		view, err := overlay.New(base, given())
		if err != nil {
			t.Fatal(err)
		}
		found, err := view.Objects(t.Context(), cluster.Selection{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "default", Selector: labels.Everything()})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, obj := range found {
			created := obj.GetCreationTimestamp()
			all[obj.GetName()] = string(obj.GetUID()) + " " + created.UTC().Format(time.RFC3339)
		}
		return all
	}
	first := identities()
	if again := identities(); !maps.Equal(first, again) {
		t.Errorf("got %v and then %v", first, again)
	}
	if first["own"] != "mine 2001-09-09T01:46:40Z" {
		t.Errorf("an object that brings its own has %q", first["own"])
	}
	if one, two := first["one"], first["two"]; one == two || !strings.HasSuffix(one, " 1970-01-01T00:00:00Z") || len(one) != 36+21 {
		t.Errorf("got %q and %q, want two uids and the beginning of time", one, two)
	}
}
