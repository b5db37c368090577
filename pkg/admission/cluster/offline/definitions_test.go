// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definitionOf is a CustomResourceDefinition of the kind Gadget with one field.
func definitionOf(group, field string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.%s}
spec:
  group: %s
  scope: Cluster
  names: {plural: gadgets, kind: Gadget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {%s: {type: string}}}}}
---
`, group, group, field)
}

func TestWatchDefinitions(t *testing.T) {
	const a, b = "a.example", "b.example"
	w := opened(t, map[string]string{"a.yaml": definitionOf(a, "size"), "map.yaml": configMap("one")})
	var told []string
	var seen []bool // whether the view has a.example/v1 with a weight
	w.WatchDefinitions(func(groups []string) {
		told = append(told, strings.Join(groups, " "))
		found, err := w.View().Schema(schema.GroupVersionKind{Group: a, Version: "v1", Kind: "Gadget"})
		seen = append(seen, err == nil && len(found.Properties["weight"].Type) > 0)
		slices.Reverse(groups) // that of others stays
	})
	w.WatchDefinitions(func(groups []string) {
		if got := strings.Join(groups, " "); got != told[len(told)-1] {
			t.Errorf("the second watcher got %s, the first %s", got, told[len(told)-1])
		}
	})
	steps := []struct {
		name    string
		change  func()
		want    string
		weighty bool
	}{
		{"nothing", func() {}, "", false},
		{"another object", func() { w.write("map.yaml", configMap("two")) }, "", false},
		{"annotated", func() {
			w.write("a.yaml", strings.Replace(definitionOf(a, "size"), "metadata: {", "metadata: {annotations: {a: b}, ", 1))
		}, "", false},
		{"moved", func() { w.rename("a.yaml", "c.yaml") }, "", false},
		{"changed", func() { w.write("c.yaml", definitionOf(a, "weight")) }, a, true},
		{"added", func() { w.write("b.yaml", definitionOf(b, "size")) }, b, true},
		{"broken", func() { w.write("b.yaml", "kind: [") }, "", true},
		{"mended", func() { w.write("b.yaml", definitionOf(b, "size")) }, "", true},
		{"both", func() { w.write("b.yaml", definitionOf(b, "form")); w.write("c.yaml", definitionOf(a, "size")) }, a + " " + b, false},
		{"removed", func() { w.remove("b.yaml") }, b, false},
	}
	for _, step := range steps {
		told, seen = nil, nil
		step.change()
		w.settled()
		if err := w.Status().Err; (err != nil) != (step.name == "broken") {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := strings.Join(told, ", "); got != step.want {
			t.Errorf("%s: told of %q, want %q", step.name, got, step.want)
		}
		if step.want != "" && (len(seen) != 1 || seen[0] != step.weighty) {
			t.Errorf("%s: when told, the view was not the new one", step.name)
		}
	}
}

// TestWatchDefinitionsRunning wants that Run tells.
func TestWatchDefinitionsRunning(t *testing.T) {
	told := make(chan []string, 10)
	w := opened(t, map[string]string{"map.yaml": configMap("one")}, func(d *Directory) {
		d.clock = eventsOnly{}
		d.WatchDefinitions(func(groups []string) { told <- groups })
	})
	w.follows(w.Directory.Run)
	w.write("a.yaml", definitionOf("a.example", "size"))
	waitFor(t, "the watcher", func() bool { return len(told) > 0 })
	if got := <-told; !slices.Equal(got, []string{"a.example"}) {
		t.Errorf("told of %v", got)
	}
}
