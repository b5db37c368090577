// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestRead(t *testing.T) {
	for _, test := range []struct {
		name, content, want, fault string
	}{
		{name: "nothing"},
		{name: "a stream", content: "---\nkind: A\n---\n# nothing\n---\n{}\n---\nkind: B\n", want: "A B"},
		{name: "JSON", content: `{"kind": "A"}`, want: "A"},
		{name: "broken", content: "kind: A\n---\nkind: [", fault: "objects.yaml: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "objects.yaml")
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := Read(file)
			if (err != nil) != (test.fault != "") || err != nil && !strings.Contains(err.Error(), test.fault) {
				t.Fatalf("got %v, want an error with %q", err, test.fault)
			}
			var kinds []string
			for _, object := range found {
				kinds = append(kinds, object.GetKind())
			}
			if got := strings.Join(kinds, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func object(namespace, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": value},
		"metadata": map[string]any{"name": "a", "namespace": namespace},
	}}
}

// fake returns a store that serves ConfigMaps, and its client.
func fake(stored ...runtime.Object) (*Store, *dynamicfake.FakeDynamicClient) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), stored...)
	return &Store{client: client, mapper: mapper}, client
}

func TestCreate(t *testing.T) {
	store, _ := fake(object("one", "old"))
	if err := store.Create(t.Context(), object("one", "new")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("an object that exists: %v", err)
	}
	if err := store.Create(t.Context(), object("two", "new")); err != nil {
		t.Errorf("the same name in another namespace: %v", err)
	}
	unknown := object("one", "new")
	unknown.SetKind("Gadget")
	if err := store.Create(t.Context(), unknown); !meta.IsNoMatchError(err) {
		t.Errorf("an unknown kind: %v", err)
	}
}

// TestPut replaces what others write at the same time.
func TestPut(t *testing.T) {
	store, client := fake(object("one", "old"))
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	conflicts := 1
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts--
		return conflicts >= 0, nil, apierrors.NewConflict(resource.GroupResource(), "a", errors.New("changed"))
	})
	for _, namespace := range []string{"one", "two"} {
		if err := store.Put(t.Context(), object(namespace, "new")); err != nil {
			t.Fatal(err)
		}
		got, err := client.Resource(resource).Namespace(namespace).Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if value, _, _ := unstructured.NestedString(got.Object, "data", "key"); value != "new" {
			t.Errorf("%s holds %q", namespace, value)
		}
	}
	if conflicts != -1 {
		t.Errorf("%d attempts to update, want 2", 1-conflicts)
	}
}
