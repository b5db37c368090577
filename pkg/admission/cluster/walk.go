// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Visited is an object of a walk, with what is known of those that follow.
type Visited struct {
	Object *unstructured.Unstructured
	// Bytes is about what the walk had to read, or to make, for the object; 0 when the
	// view holds it anyway.
	Bytes int
	// Left is how many objects follow at least. More says that there may be others
	// after those.
	Left int
	More bool
}

// Visit is called for each object of a walk. It returns whether the walk goes on. It
// may keep the object, but then that stays in memory.
type Visit func(one Visited) (more bool, err error)

// WalkHeld visits objects that a view holds anyway, as View.Walk does. It does not
// modify the list.
func WalkHeld(objects []*unstructured.Unstructured, visit Visit) error {
	objects = slices.Clone(objects)
	slices.SortFunc(objects, ComparePaths)
	for i, object := range objects {
		if more, err := visit(Visited{Object: object, Left: len(objects) - i - 1}); err != nil || !more {
			return err
		}
	}
	return nil
}

// ComparePaths compares objects of one kind by namespace and name as one text, with a
// slash in between, which is the order in which kube-apiserver lists: what is in team-a
// comes before what is in team.
func ComparePaths(a, b *unstructured.Unstructured) int {
	if a.GetNamespace() == b.GetNamespace() {
		return cmp.Compare(a.GetName(), b.GetName())
	}
	return cmp.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
}
