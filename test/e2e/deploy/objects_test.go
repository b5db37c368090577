// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/test/controlplane"
)

// objectsOf are the objects of a kustomization as they are stored, by kind and name.
func objectsOf(t *testing.T, c *controlplane.ControlPlane, dir string) map[string]*unstructured.Unstructured {
	t.Helper()
	return objects(t, must(t, c, "", "get", "--show-managed-fields", "-k", dir, "-o", "json"))
}

// objects are those of what kubectl says with -o json: a list, or one after another.
func objects(t *testing.T, output string) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	stream := json.NewDecoder(strings.NewReader(output))
	for {
		var next unstructured.Unstructured
		err := stream.Decode(&next.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		add := func(object *unstructured.Unstructured) {
			all[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = object
		}
		if !next.IsList() {
			add(&next)
			continue
		}
		if err := next.EachListItem(func(item runtime.Object) error {
			object, ok := item.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("%T in a list", item)
			}
			add(object)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// compare says which objects are not as they were: written, generation and managed
// fields.
func compare(t *testing.T, before, after map[string]*unstructured.Unstructured) {
	t.Helper()
	for name, was := range before {
		is := after[name]
		if is == nil {
			t.Errorf("%s is gone", name)
			continue
		}
		if was.GetUID() != is.GetUID() || was.GetResourceVersion() != is.GetResourceVersion() || was.GetGeneration() != is.GetGeneration() ||
			encoded(t, was.GetManagedFields()) != encoded(t, is.GetManagedFields()) {
			t.Errorf("%s was written:\n%s\nbefore:\n%s", name, encoded(t, is), encoded(t, was))
		}
	}
	if len(before) != len(after) {
		t.Errorf("got %d objects, want %d", len(after), len(before))
	}
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
