// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern_test

import "testing"

func BenchmarkMatch(b *testing.B) {
	for _, test := range []struct{ name, pattern, value string }{
		{"literal", `"nginx"`, `"nginx"`},
		{"wildcards", `"*:latest | registry.*:1.?? & !*beta*"`, `"registry.example.com/team/nginx:1.27"`},
		{"number", `">1024"`, `8080`},
		{"quantity", `"<=2Gi"`, `"512Mi"`},
		{"duration", `"<1h"`, `"90s"`},
		{
			"object", `{"(image)": "*nginx*", "=(securityContext)": {"=(runAsUser)": ">0"}, "X(tty)": "null", "ports": [{"containerPort": ">1024"}]}`,
			`{"name": "a", "image": "nginx:1.27", "securityContext": {"runAsUser": 1000}, "ports": [{"containerPort": 8080}, {"containerPort": 8443}]}`,
		},
	} {
		b.Run(test.name, func(b *testing.B) {
			compiled, value := compile(b, test.pattern), decode(b, test.value)
			b.ReportAllocs()
			for b.Loop() {
				if !compiled.MatchText(value) {
					b.Fatal("does not match")
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	tree := decode(b, `{"(image)": "*nginx* | *apache*", "=(securityContext)": {"=(runAsUser)": ">0"}, "ports": [{"containerPort": "1024-65535"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		compileTree(b, tree)
	}
}
