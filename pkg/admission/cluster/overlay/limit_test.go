// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

// TestLimit: the first objects are those of both layers together.
func TestLimit(t *testing.T) {
	configMap := func(namespace, name, label string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		obj.SetNamespace(namespace)
		obj.SetName(name)
		obj.SetLabels(map[string]string{"label": label})
		return obj
	}
	base, err := offline.New([]*unstructured.Unstructured{
		configMap("a", "1", "x"), configMap("a", "2", "x"), configMap("b", "1", "x"), configMap("c", "1", "x"),
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
	tests := []struct {
		limit int
		want  string
	}{
		{0, "b/0 b/1 c/1 d/1"}, {1, "b/0"}, {2, "b/0 b/1"}, {3, "b/0 b/1 c/1"}, {9, "b/0 b/1 c/1 d/1"},
	}
	for _, test := range tests {
		found, err := view.Objects(t.Context(), cluster.Selection{
			Kind:     schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Selector: labels.SelectorFromSet(labels.Set{"label": "x"}), Limit: test.limit,
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range found {
			got = append(got, one.GetNamespace()+"/"+one.GetName())
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("limit %d: got %v, want %s", test.limit, got, test.want)
		}
	}
	roles, err := base.Objects(t.Context(), cluster.Selection{
		Kind:     schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		Selector: labels.Everything(), Limit: 3,
	})
	if err != nil || len(roles) != 3 || roles[0].GetName() != "admin" {
		t.Errorf("got %d roles, %v, want the first three", len(roles), err)
	}
}
