// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"testing"
)

func pod() map[string]any {
	container := func(name, image string) any {
		return map[string]any{"name": name, "image": image, "ports": []any{map[string]any{"containerPort": int64(80)}}}
	}
	return map[string]any{
		"metadata": map[string]any{"name": "web", "namespace": "shop", "labels": map[string]any{"app": "web", "tier": "front"}},
		"spec":     map[string]any{"replicas": int64(3), "containers": []any{container("a", "nginx:1"), container("b", "redis:2")}},
	}
}

func BenchmarkSearch(b *testing.B) {
	scope := fixed{"request": map[string]any{"object": pod(), "operation": "CREATE"}}
	for name, expression := range map[string]string{
		"path":       "request.object.metadata.name",
		"default":    "request.object.metadata.annotations.owner || 'nobody'",
		"projection": "request.object.spec.containers[].image",
		"filter":     "request.object.spec.containers[?name == 'b'].image | [0]",
		"function":   "length(request.object.spec.containers)",
		"comparison": "request.object.spec.replicas > `2`",
	} {
		b.Run(name, func(b *testing.B) {
			e, err := NewCompiler().Compile(expression)
			if err != nil {
				b.Fatal(err)
			}
			run := &Run{}
			b.ReportAllocs()
			for b.Loop() {
				run.Steps, run.Bytes = 1000, 100000
				if _, err := e.Search(b.Context(), run, scope); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
