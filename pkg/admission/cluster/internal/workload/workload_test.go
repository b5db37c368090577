// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/workload"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
)

func decode(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// beyond are the fields that are no defaults: status, and what the strategies of
// DaemonSets and Jobs and the admission plugins for Pods set.
func beyond() [][]string {
	return [][]string{
		{"status"},
		{"metadata", "annotations"},
		{"spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"},
		{"spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"},
		{"spec", "template", "metadata", "labels", "batch.kubernetes.io/job-name"},
		{"spec", "template", "metadata", "labels", "controller-uid"},
		{"spec", "template", "metadata", "labels", "job-name"},
		{"spec", "preemptionPolicy"},
		{"spec", "priority"},
		{"spec", "tolerations"},
	}
}

// TestDefault compares with the recorded objects.
func TestDefault(t *testing.T) {
	given, stored := decode(t, "given.yaml"), decode(t, "stored.yaml")
	if len(given) != len(stored) {
		t.Fatalf("%d objects were given and %d stored", len(given), len(stored))
	}
	for i, want := range stored {
		t.Run(want.GetKind()+" "+want.GetName(), func(t *testing.T) {
			for _, field := range beyond() {
				unstructured.RemoveNestedField(want.Object, field...)
			}
			if want.GetKind() == "Job" {
				unstructured.RemoveNestedField(want.Object, "spec", "selector")
				unstructured.RemoveNestedField(want.Object, "spec", "template", "metadata", "labels")
			}
			before := given[i].DeepCopy()
			if diff := cmp.Diff(want.Object, workload.Default(given[i]).Object); diff != "" {
				t.Errorf("the objects differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, given[i]); diff != "" {
				t.Errorf("what was given has changed:\n%s", diff)
			}
			if again := workload.Default(workload.Default(given[i])); !cmp.Equal(want, again) {
				t.Errorf("defaults were set again: %v", again)
			}
		})
	}
}

// TestDefaultOfOthers leaves alone what has another kind, or values of other types
// than its kind has.
func TestDefaultOfOthers(t *testing.T) {
	for _, text := range []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
		`{apiVersion: a.example/v1, kind: Deployment, metadata: {name: a}, spec: {}}`,
		`{apiVersion: apps/v1, kind: Scale, metadata: {name: a}, spec: {}}`,
	} {
		obj := read(t, text)
		if got := workload.Default(obj); got != obj {
			t.Errorf("got %v of %s, want the object itself", got, text)
		}
	}
	for _, text := range []string{
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: none}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: a, generation: 1}}`,
	} {
		obj := read(t, text)
		if diff := cmp.Diff(obj, workload.Default(obj)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	obj := read(t, `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [none, {ports: none, image: 5}]}}`)
	containers, _, err := unstructured.NestedSlice(workload.Default(obj).Object, "spec", "containers")
	if err != nil || containers[0] != "none" {
		t.Errorf("got %v, %v, want the first container as it was", containers, err)
	}
}

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects[0]
}
