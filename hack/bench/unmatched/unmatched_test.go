// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package unmatched_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/hack/bench/unmatched"
)

// TestPolicy: no two policies are the same, and some are about Pods.
func TestPolicy(t *testing.T) {
	names, kinds, aboutPods := map[string]bool{}, map[string]int{}, 0
	for i := range 100 {
		object := unmatched.Policy(i)
		names[object.GetName()] = true
		kinds[object.GetKind()]++
		rules, _, err := unstructured.NestedSlice(object.Object, "spec", "rules")
		if err != nil || len(rules) != 1 {
			t.Fatalf("got the rules %v and error %v", rules, err)
		}
		filters, _, err := unstructured.NestedSlice(rules[0].(map[string]any), "match", "any") //nolint:forcetypeassert // as built
		if err != nil || len(filters) != 1 {
			t.Fatalf("got the filters %v and error %v", filters, err)
		}
		about, _, err := unstructured.NestedStringSlice(filters[0].(map[string]any), "resources", "kinds") //nolint:forcetypeassert // as built
		if err != nil || len(about) == 0 {
			t.Fatalf("got the kinds %v and error %v", about, err)
		}
		if about[0] == "Pod" {
			aboutPods++
		}
	}
	if len(names) != 100 || kinds["ClusterPolicy"] != 90 || kinds["Policy"] != 10 || aboutPods != 40 {
		t.Errorf("got %d names, %v, %d about Pods", len(names), kinds, aboutPods)
	}
}
