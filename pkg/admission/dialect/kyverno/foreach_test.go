// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// loops are foreach that change each container of a Pod.
func loops() map[string]string {
	const list = "mutate:\n  foreach:\n  - list: request.object.spec.containers\n"
	return map[string]string{
		"jsonpatch": list + "    patchesJson6902: \"- {op: add, path: '/spec/containers/{{elementIndex}}/tty', value: true}\"",
		"merge":     list + "    patchStrategicMerge: {spec: {containers: [{name: \"{{element.name}}\", tty: true}]}}",
		"anchors":   list + "    patchStrategicMerge: {spec: {containers: [{(name): \"{{element.name}}\", tty: true}]}}",
		"nested":    list + "    foreach:\n    - list: element.ports || `[{\"containerPort\":80}]`\n      patchesJson6902: \"- {op: add, path: '/spec/containers/{{elementIndex0}}/ports', value: [{containerPort: 80}]}\"",
	}
}

// podOf returns a Pod with so many containers.
func podOf(t testing.TB, containers int) *unstructured.Unstructured {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec:\n  containers:\n")
	for i := range containers {
		fmt.Fprintf(&text, "  - {name: c%d, image: \"nginx:1.27\"}\n", i)
	}
	return object(t, text.String())
}

// TestForEachIsLinear: JSON patches in a loop over 10,000 elements do not copy the list for
// each of them, which would take more than a gigabyte.
func TestForEachIsLinear(t *testing.T) {
	for _, name := range []string{"jsonpatch", "nested"} {
		unit, view, obj := compiled(t, rule(loops()[name])), offlineView(t), podOf(t, 10_000)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		findings := unit.Policy.Program.Evaluate(t.Context(), input(create(obj), view))
		runtime.ReadMemStats(&after)
		if findings[0].Kind != verdict.Mutated {
			t.Fatal(findings[0].Message)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s: it has taken %d MiB", name, took>>20)
		}
	}
}

// BenchmarkForEach measures loops over long lists: ten times as many elements must not
// take a hundred times as long.
func BenchmarkForEach(b *testing.B) {
	for name, fields := range loops() {
		for _, elements := range []int{100, 1_000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, elements), func(b *testing.B) {
				unit, view, obj := compiled(b, rule(fields)), offlineView(b), podOf(b, elements)
				b.ReportAllocs()
				for b.Loop() {
					findings := unit.Policy.Program.Evaluate(b.Context(), input(create(obj), view))
					if findings[0].Kind != verdict.Mutated {
						b.Skip(findings[0].Message)
					}
				}
			})
		}
	}
}
