// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRedefinedStaysSmall: a base that changes, as a live one does, does not make a
// layer over it larger.
func TestRedefinedStaysSmall(t *testing.T) {
	var known redefined
	var room room
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	read := func(name string) {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetGroupVersionKind(kind)
		obj.SetName(name)
		one := known.of(obj, &room)
		if again := known.of(obj, &room); again != one {
			t.Fatal("the same object is read anew")
		}
		if err := room.take(1000); err != nil {
			t.Fatal(err)
		}
		one.read.Store(&reading{kind: kind, object: obj, size: 1000})
	}
	for range 1_000 {
		read("one")
	}
	if got := room.taken.Load(); len(known.byKey) != 1 || got != 1000 {
		t.Errorf("%d objects take %d, want the last state of one", len(known.byKey), got)
	}
	for i := range 3 * maxRedefined {
		read(fmt.Sprint(i))
	}
	if got := room.taken.Load(); len(known.byKey) > maxRedefined || got > maxRedefined*1000 {
		t.Errorf("%d objects take %d, want no more than %d objects", len(known.byKey), got, maxRedefined)
	}
}
