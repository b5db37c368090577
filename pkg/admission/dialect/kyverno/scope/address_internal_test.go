// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"slices"
	"strings"
	"testing"
)

// FuzzAddress has any path lead to an address within the text, and, with a part of it in
// the place of a variable, to one that the path with the variable is known to ask.
func FuzzAddress(f *testing.F) {
	for _, text := range []string{
		"/api/v1/namespaces/a/configmaps/b", "/api/v1/pods?labelSelector=a%3Db", "/apis/apps/v1/namespaces/a/deployments",
		"/api/v1/namespaces/a", "/apis/g/v1/namespaces/%2e%2e/x", "/api/v1/namespaces/a/pods/b/log", "/apis/apps", "", "/", "/api/v1/{{a}}/b",
		"/api/v1/$(a/b)/{{ {{x}} }}?labelSelector={{", "//a//", "/api/v1/*",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		patterns(text)
		parsed, selector, err := parseAddress(text)
		if err != nil {
			return
		}
		if (selector == nil) != (parsed.name != "") {
			t.Fatalf("%q: name %q with selector %v", text, parsed.name, selector)
		}
		for _, part := range []string{parsed.resource.Version, parsed.resource.Resource, parsed.namespace, parsed.name} {
			if part == anything || part == ".." || strings.ContainsAny(part, "/%?#") {
				t.Fatalf("%q has the part %q", text, part)
			}
		}
		if strings.Contains(text, "{{") || strings.Contains(text, "$(") {
			return
		}
		plain, _, _ := strings.Cut(text, "?")
		segments := strings.Split(plain, "/")
		for i := 1; i < len(segments); i++ {
			open := slices.Clone(segments)
			open[i] = "{{ v }}"
			known := patterns(strings.Join(open, "/"))
			if !slices.ContainsFunc(known, func(a address) bool { return a.covers(parsed) }) {
				t.Fatalf("%q is not covered by %v of %q", text, known, open)
			}
		}
	})
}

func TestPatterns(t *testing.T) {
	tests := []struct{ text, other string }{
		{"/api/v1/namespaces/{{a}}/configmaps", "/api/v1/namespaces/x/secrets"},
		{"/api/v1/namespaces/{{a}}/configmaps", "/api/v1/configmaps"},
		{"/api/v1/namespaces/{{a}}/configmaps", "/api/v1/namespaces/x/configmaps/y"},
		{"/api/v1/namespaces/x/configmaps/{{a}}", "/api/v1/namespaces/y/configmaps/x"},
		{"/api/v1/namespaces/x/configmaps/{{a}}", "/apis/apps/v1/namespaces/x/configmaps/y"},
		{"/api/v1/{{ join('/', ['a', 'b']) }}", "/api/v1/namespaces/x/configmaps/y"},
		{"/apis/apps/v1/namespaces/$(../../x)/deployments", "/apis/apps/v1/namespaces/x/daemonsets"},
	}
	for _, test := range tests {
		parsed, _, err := parseAddress(test.other)
		if err != nil {
			t.Fatal(err)
		}
		if known := patterns(test.text); slices.ContainsFunc(known, func(a address) bool { return a.covers(parsed) }) {
			t.Errorf("%s covers %s: %v", test.text, test.other, known)
		}
	}
	for _, text := range []string{"{{a}}", "/{{a}}", "/apis/{{a}}/x", "/api/{{v}}/pods", "x{{a}}", "/api/v1{{a"} {
		if known := patterns(text); !slices.Equal(known, []address{wide(""), wide(anything)}) {
			t.Errorf("%s is %v", text, known)
		}
	}
}
