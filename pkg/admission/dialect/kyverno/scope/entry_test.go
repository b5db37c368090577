// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/scope"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

func TestFaults(t *testing.T) {
	tests := []struct{ namespace, entries, want string }{
		{entries: `[{variable: {value: 1}}]`, want: `context[0].name: Required value: the name of the variable`},
		{entries: `[{name: request, variable: {value: 1}}]`, want: `context[0].name: Invalid value: "request": the variable request is always there`},
		{entries: `[{name: element.x, variable: {value: 1}}]`, want: `context[0].name: Invalid value: "element.x": the variable element is always there`},
		{entries: `[{name: v}]`, want: `context[0]: Required value: an entry has exactly one of variable, configMap and apiCall`},
		{entries: `[{name: v, variable: {value: 1}, configMap: {name: a}}]`, want: `context[0]: Required value: an entry has exactly one of`},
		{entries: `[{name: a, variable: {value: 1}}, {name: v, imageRegistry: {reference: a}}]`, want: `context[1].imageRegistry: Forbidden: image registries are not asked`},
		{entries: `[{name: v, globalReference: {name: a}}]`, want: `context[0].globalReference: Forbidden: there are no GlobalContextEntries`},
		{entries: `[{name: v, variable: {}}]`, want: `context[0].variable: Required value: a variable has a value or a jmesPath`},
		{entries: `[{name: v, variable: {value: null}}]`, want: `context[0].variable: Required value: a variable has a value or a jmesPath`},
		{entries: `[{name: v, variable: {value: 1, default: 2}}]`, want: `context[0].variable.default: Invalid value: a default needs a jmesPath`},
		{entries: `[{name: v, variable: {jmesPath: "a["}}]`, want: `context[0].variable.jmesPath: Invalid value: "a[": `},
		{entries: `[{name: v, variable: {jmesPath: "nope(a)"}}]`, want: `context[0].variable.jmesPath: Invalid value: "nope(a)": `},
		{entries: `[{name: v, variable: {value: {a: [x, "{{ b[ }}"]}}}]`, want: `context[0].variable.value.a[1]: Invalid value: `},
		{entries: `[{name: v, configMap: {namespace: a}}]`, want: `context[0].configMap.name: Required value: the name of the ConfigMap`},
		{entries: `[{name: v, configMap: {name: a, namespace: lab}}]`, namespace: "shop", want: `context[0].configMap.namespace: Invalid value: "lab": a Policy of namespace shop reads no ConfigMap of namespace lab`},
		{entries: call(``), want: `context[0].apiCall.urlPath: Required value: the path of a request`},
		{entries: call(`service: {url: "https://x"}`), want: `context[0].apiCall.service: Forbidden: services are not called`},
		{entries: call(`urlPath: /api/v1/pods, method: PUT`), want: `context[0].apiCall.method: Unsupported value: "PUT": supported values: "GET", "POST"`},
		{entries: call(`urlPath: /api/v1/pods, jmesPath: "a["`), want: `context[0].apiCall.jmesPath: Invalid value: "a["`},
		{entries: call(`urlPath: /api/v1/pods, method: POST`), want: `context[0].apiCall.urlPath: Invalid value: "/api/v1/pods": a policy changes nothing in the cluster`},
		{entries: call(`urlPath: "/api/v1/namespaces/{{request.namespace}}/pods", method: POST`), want: `a policy changes nothing in the cluster`},
		{entries: call(`urlPath: /apis/authorization.k8s.io/v1/selfsubjectaccessreviews, method: POST`), want: `a policy changes nothing in the cluster`},
		{entries: call(`urlPath: ` + localReviews + `/x, method: POST`), want: `a policy changes nothing in the cluster`},
		{entries: call(`urlPath: /apis/authorization.k8s.io/v1/localsubjectaccessreviews, method: POST`), want: `a policy changes nothing in the cluster`},
		{entries: call(`urlPath: ` + reviews + `, method: POST`), namespace: "shop", want: `the path must have /namespaces/shop/ in it`},
		{entries: call(`urlPath: /api/v1/namespaces/lab/pods`), namespace: "shop", want: `the path must have /namespaces/shop/ in it`},
		{entries: call(`urlPath: "/api/v1/namespaces/lab/pods/{{request.name}}"`), namespace: "shop", want: `the path must have /namespaces/shop/ in it`},
		{entries: call(`urlPath: /api/v1/pods`), namespace: "shop", want: `the path must have /namespaces/shop/ in it`},
		{entries: call(`urlPath: /api/v1/namespaces`), namespace: "shop", want: `the path must have /namespaces/shop/ in it`},
		{entries: call(`urlPath: /api/v1/namespaces/lab`), namespace: "shop", want: `the path must have /namespaces/shop/ in it`},
		{entries: call(`urlPath: /api/v1/namespaces/shop/pods/a/log`), want: `the path names the subresource "log"`},
		{entries: call(`urlPath: /api/v1/namespaces/shop/status`), want: `the path names the subresource "status"`},
		{entries: call(`urlPath: /api/v1/watch/pods`), want: `the path is one of watch`},
		{entries: call(`urlPath: /apis/apps/v1`), want: `discovery is not supported`},
		{entries: call(`urlPath: /version`), want: `discovery is not supported`},
		{entries: call(`urlPath: api/v1/pods`), want: `does not begin with /`},
		{entries: call(`urlPath: /api/v1/namespaces/shop/../pods`), want: `has the part ".."`},
		{entries: call(`urlPath: /api/v1/namespaces/shop/%2e%2e/pods`), want: `has the part ".."`},
		{entries: call(`urlPath: /api/v1//pods`), want: `it is empty`},
		{entries: call(`urlPath: /api/v1/pods/`), want: `it is empty`},
		{entries: call(`urlPath: /api/v1/pods/*`), want: `it has one of the characters`},
		{entries: call(`urlPath: /api/v1/pods%3fa=b`), want: `it has one of the characters`},
		{entries: call(`urlPath: "/api/v1/pods?limit=1"`), want: `the query "limit=1" is not supported`},
		{entries: call(`urlPath: "/api/v1/pods?labelSelector=a=b&fieldSelector=spec.nodeName=c"`), want: `is not supported: a list takes one labelSelector`},
		{entries: call(`urlPath: "/api/v1/namespaces/a?labelSelector=a"`), want: `is not supported: a list takes one labelSelector`},
		{entries: call(`urlPath: "/api/v1/pods?labelSelector=a=b=c"`), want: `the labelSelector of the query`},
	}
	for _, test := range tests {
		t.Run(test.entries, func(t *testing.T) {
			entries, _, errs := compile(t, test.namespace, test.entries)
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want) {
				t.Fatalf("got %v, want %s", errs, test.want)
			}
			// The entry is there, and fails.
			run := newRun()
			variables := scope.New(policy.Input{Request: widgetRequest(t), View: viewOf(t, "")}, run)
			defer variables.Begin(entries)()
			name := entries[len(entries)-1].Name()
			if _, ok, err := variables.Field(t.Context(), name); err == nil && name != "" && name != "request" {
				t.Errorf("%s is there: %v", name, ok)
			}
		})
	}
}

func TestUses(t *testing.T) {
	entries := mustCompile(t, "", `[
		{name: a, variable: {value: {k: ["{{x.y}}"]}, jmesPath: "{{z}}", default: "{{w}}"}},
		{name: b, variable: {jmesPath: undefined.x}},
		{name: c, variable: {jmesPath: optional.x, default: 1}},
		{name: d, configMap: {name: "{{n}}", namespace: "{{m}}"}},
		{name: e, apiCall: {urlPath: "/api/v1/namespaces/{{ns}}/pods", jmesPath: items}}]`)
	var got []string
	for _, entry := range entries {
		for _, use := range entry.Uses() {
			got = append(got, fmt.Sprintf("%s %s: %s", entry.Name(), strings.Join(use.Path, "."), use.Name))
		}
	}
	want := `a variable.value.k.0: x
a variable.default: w
a variable.jmesPath: z
b variable.jmesPath: undefined
d configMap.name: n
d configMap.namespace: m
e apiCall.urlPath: ns`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
