// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// BenchmarkEvaluate measures a policy that changes a Pod, and one that does not.
func BenchmarkEvaluate(b *testing.B) {
	for name, fields := range map[string]string{
		"jsonpatch": "preconditions: {all: [{key: \"{{request.operation}}\", operator: AnyIn, value: [CREATE, UPDATE]}, {key: \"{{request.object.metadata.labels.app || ''}}\", operator: NotEquals, value: \"\"}]}\nmutate: {patchesJson6902: \"- {op: add, path: /metadata/labels/by, value: '{{request.userInfo.username}}'}\"}",
		"merge":     `mutate: {patchStrategicMerge: {metadata: {labels: {by: "{{request.userInfo.username}}"}}}}`,
		"foreach":   "mutate:\n  foreach:\n  - list: request.object.spec.containers\n    patchesJson6902: \"- {op: add, path: '/spec/containers/{{elementIndex}}/tty', value: true}\"",
		"skipped":   "preconditions: {all: [{key: \"{{request.operation}}\", operator: Equals, value: DELETE}]}\nmutate: {patchStrategicMerge: {metadata: {labels: {by: jane}}}}",
		"unmatched": "exclude: {any: [{resources: {kinds: [Pod], names: [w*]}}]}\nmutate: {patchStrategicMerge: {metadata: {labels: {by: jane}}}}",
	} {
		b.Run(name, func(b *testing.B) {
			unit, view, obj := compiled(b, rule(fields)), offlineView(b), object(b, pod)
			b.ReportAllocs()
			for b.Loop() {
				for _, finding := range unit.Policy.Program.Evaluate(b.Context(), input(create(obj), view)) {
					if finding.Kind == verdict.Error {
						b.Fatal(finding.Message)
					}
				}
			}
		})
	}
}

// BenchmarkCompile measures a policy of three rules.
func BenchmarkCompile(b *testing.B) {
	text := rule("mutate: {patchesJson6902: \"- {op: add, path: /metadata/labels/by, value: '{{request.userInfo.username}}'}\"}")
	b.ReportAllocs()
	for b.Loop() {
		compiled(b, text)
	}
}
