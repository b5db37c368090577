// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

// TestManyErrors: of many errors a caller is told the first, and how many more there
// are.
func TestManyErrors(t *testing.T) {
	base, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for i := range 10_000 {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "a.example/v1", "kind": fmt.Sprint("Kind", i), "metadata": map[string]any{"name": "a"},
		}})
	}
	_, err = overlay.New(base, objects)
	var faults overlay.Errors
	if !errors.As(err, &faults) || len(faults) != len(objects) {
		t.Fatalf("got %d errors, want %d", len(faults), len(objects))
	}
	told := faults.At(field.NewPath("spec", "cluster"))
	if len(told) != 101 || told[99].Field != "spec.cluster[99].kind" || told[100].Error() != "spec.cluster: Invalid value: and 9900 more faults" {
		t.Errorf("told of %d errors, the last: %v", len(told), told[len(told)-1])
	}
}
