// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

// walked visits up to so many objects, and writes them with what is left.
func walked(t *testing.T, view cluster.View, selection cluster.Selection, most int) string {
	t.Helper()
	var all []string
	err := view.Walk(t.Context(), selection, func(one cluster.Visited) (bool, error) {
		text := fmt.Sprintf("%s/%s:%d", one.Object.GetNamespace(), one.Object.GetName(), one.Left)
		if one.More {
			text += "+"
		}
		all = append(all, text)
		return len(all) < most, nil
	})
	if err != nil {
		all = append(all, "error: "+err.Error())
	}
	return strings.Join(all, " ")
}

// TestWalk: the objects are those of both layers together, in one order.
func TestWalk(t *testing.T) {
	configMap := func(namespace, name, label string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		obj.SetNamespace(namespace)
		obj.SetName(name)
		obj.SetLabels(map[string]string{"label": label})
		return obj
	}
	base, err := overlay.New(newBase(t, ""), []*unstructured.Unstructured{
		configMap("a", "1", "x"), configMap("a", "2", "x"), configMap("b", "1", "x"), configMap("c", "1", "x"), configMap("a-z", "1", "x"),
	})
	if err != nil {
		t.Fatal(err)
	}
	view, err := overlay.New(base, []*unstructured.Unstructured{
		configMap("a", "1", "y"), configMap("a", "2", "y"), configMap("b", "0", "x"), configMap("d", "1", "x"),
	})
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	labelled := cluster.Selection{Kind: kind, Selector: labels.SelectorFromSet(labels.Set{"label": "x"})}
	tests := []struct {
		name      string
		view      cluster.View
		selection cluster.Selection
		most      int
		want      string
	}{
		{"one layer", base, labelled, 9, "a-z/1:4 a/1:3 a/2:2 b/1:1 c/1:0"},
		{"all", view, labelled, 9, "a-z/1:2+ b/0:2+ b/1:1+ c/1:1 d/1:0"},
		{"some of the layer below", view, labelled, 1, "a-z/1:2+"},
		{"some of the layer", view, labelled, 2, "a-z/1:2+ b/0:2+"},
		{"a namespace", view, cluster.Selection{Kind: kind, Namespace: "a", Selector: labels.Everything()}, 9, "a/1:1 a/2:0"},
		{"a name", view, cluster.Selection{Kind: kind, Namespace: "a", Name: "1"}, 9, "a/1:0"},
		{"no selector", view, cluster.Selection{Kind: kind}, 9, ""},
		{"unknown kind", view, cluster.Selection{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Gizmo"}}, 9, `error: no matches for kind "Gizmo" in version "v1"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := walked(t, test.view, test.selection, test.most); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	refused, count := errors.New("enough"), 0
	err = view.Walk(t.Context(), labelled, func(cluster.Visited) (bool, error) { count++; return true, refused })
	if !errors.Is(err, refused) || count != 1 {
		t.Errorf("got %v after %d objects, want the error of who visits after one", err, count)
	}
	roles := cluster.Selection{Kind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, Selector: labels.Everything()}
	if got := walked(t, view, roles, 1); !strings.HasPrefix(got, "/admin:") {
		t.Errorf("got %s, want the first role", got)
	}
}

// TestWalkIsNotBounded: what definitions make of many objects is made for one at a time,
// and is as Objects returns it.
func TestWalkIsNotBounded(t *testing.T) {
	plain := limitDefinition("", "{openAPIV3Schema: {type: object}}")
	large := limitDefinition("", "{openAPIV3Schema: {type: object, properties: {list: {type: array, default: ["+strings.Repeat("{}, ", 10)+
		"], items: {type: object, properties: {text: {type: string, default: "+strings.Repeat("a", 1<<20)+"}}}}}}}") // 10 MiB for each object
	objects := ""
	for i := range 30 {
		objects += fmt.Sprintf("---\n{apiVersion: b.example/v1, kind: Limit, metadata: {name: a%d}}\n", i)
	}
	for name, view := range map[string]cluster.View{
		"in the layer": newBase(t, large+objects),
		"below":        newOver(t, newBase(t, plain+objects), large),
	} {
		count, bytes := 0, 0
		err := view.Walk(t.Context(), cluster.Selection{Kind: limit("v1"), Selector: labels.Everything()}, func(one cluster.Visited) (bool, error) {
			count++
			bytes += one.Bytes
			if list, ok := one.Object.Object["list"].([]any); !ok || len(list) != 10 {
				t.Errorf("%s: %s has no defaults", name, one.Object.GetName())
			}
			return true, nil
		})
		if err != nil || count != 30 || bytes < 300<<20 {
			t.Errorf("%s: got %d objects with %d bytes, %v", name, count, bytes, err)
		}
	}
}
