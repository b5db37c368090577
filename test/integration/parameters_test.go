// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// operation is one of those that the reference of a stored kind lists. Each call
// finds the policies "a" of team a and "b" of team b, and acts on "a" or on all.
type operation struct {
	method, path, contentType string
	body                      func(*testing.T, *api) []byte
	codes                     []string // documented; nil for a variant of another operation
}

func operations() map[string]operation {
	named := policiesPath + "/a"
	changed := func(t *testing.T, a *api) []byte {
		p := a.getPolicy(t, "a")
		p.TypeMeta = newPolicy("").TypeMeta
		p.Spec.Validations[0].Message = "changed"
		return encode(t, p)
	}
	return map[string]operation{
		"get":                          {method: "GET", path: named, codes: []string{"200", "401"}},
		"list":                         {method: "GET", path: policiesPath, codes: []string{"200", "401"}},
		"create":                       {method: "POST", path: policiesPath, body: func(t *testing.T, _ *api) []byte { return encode(t, newPolicy("c")) }, codes: []string{"200", "201", "202", "401"}},
		"update":                       {method: "PUT", path: named, body: changed, codes: []string{"200", "201", "401"}},
		"patch":                        {method: "PATCH", path: named, contentType: string(types.ApplyYAMLPatchType), body: applyBody, codes: []string{"200", "201", "401"}},
		"delete":                       {method: "DELETE", path: named, codes: []string{"200", "202", "401"}},
		"deletecollection":             {method: "DELETE", path: policiesPath, codes: []string{"200", "401"}},
		"deletecollection with a body": {method: "DELETE", path: policiesPath, body: func(*testing.T, *api) []byte { return []byte("{}") }},
	}
}

func applyBody(t *testing.T, _ *api) []byte {
	return encode(t, map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(),
		"kind":       "ValidatingAdmissionPolicy",
		"metadata":   map[string]any{"name": "a", "labels": map[string]any{"team": "z"}},
	})
}

// call is one request with one query and what it must lead to.
type call struct {
	operation string
	query     string // ${version} and ${continue} stand for those of the current list
	want      int
	check     func(*testing.T, *api, response)
}

// testParameters makes every call of the table, and looks that the table has every
// parameter that the OpenAPI document gives an operation.
func testParameters(t *testing.T, a *api) {
	operations := operations()
	covered := map[string]map[string]bool{}
	for _, call := range slices.Concat(readCalls(), writeCalls(), deleteCalls()) {
		if covered[call.operation] == nil {
			covered[call.operation] = map[string]bool{}
		}
		query, err := url.ParseQuery(call.query)
		if err != nil {
			t.Fatal(err)
		}
		for parameter := range query {
			covered[call.operation][parameter] = true
		}
		t.Run(call.operation+"?"+call.query, func(t *testing.T) {
			makeCall(t, a, operations[call.operation], call)
		})
	}
	document := a.openAPI(t)
	for name, operation := range operations {
		if operation.codes == nil {
			continue
		}
		parameters, codes := documented(t, document, operation)
		for _, parameter := range parameters {
			if !covered[name][parameter] {
				t.Errorf("%s: no call has parameter %s", name, parameter)
			}
		}
		if !slices.Equal(codes, operation.codes) {
			t.Errorf("%s: documented codes %v, want %v", name, codes, operation.codes)
		}
		if got := a.do(t, request{method: operation.method, path: operation.path, token: "nobody", client: a.stranger(t)}); got.code != 401 {
			t.Errorf("%s by nobody: %d, want 401", name, got.code)
		}
	}
}

func makeCall(t *testing.T, a *api, o operation, c call) {
	t.Helper()
	a.reset(t)
	a.createPolicy(t, labelledPolicy("a", "a"))
	a.createPolicy(t, labelledPolicy("b", "b"))
	page, err := a.policies().List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	query := strings.NewReplacer("${version}", page.ResourceVersion, "${continue}", url.QueryEscape(page.Continue)).Replace(c.query)
	r := request{method: o.method, path: o.path + "?" + query, contentType: o.contentType}
	if o.body != nil {
		r.body = o.body(t, a)
	}
	got := a.do(t, r)
	if got.code != c.want {
		t.Fatalf("code %d, want %d: %s", got.code, c.want, got.body)
	}
	if c.check != nil {
		c.check(t, a, got)
	}
}

// documented returns the query parameters and the codes of an operation.
func documented(t *testing.T, document *spec3.OpenAPI, o operation) (parameters, codes []string) {
	t.Helper()
	template := o.path
	if collection, named := strings.CutSuffix(o.path, "/a"); named {
		template = collection + "/{name}"
	}
	path, ok := document.Paths.Paths[template]
	if !ok {
		t.Fatalf("%s is not documented", template)
	}
	operation := map[string]*spec3.Operation{
		"GET": path.Get, "POST": path.Post, "PUT": path.Put, "PATCH": path.Patch, "DELETE": path.Delete,
	}[o.method]
	for _, parameter := range slices.Concat(path.Parameters, operation.Parameters) {
		if parameter.In == "query" {
			parameters = append(parameters, parameter.Name)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(operation.Responses.StatusCodeResponses)) {
		codes = append(codes, fmt.Sprint(code))
	}
	return parameters, codes
}

// The checks of the table.

func pretty(t *testing.T, _ *api, r response) {
	t.Helper()
	if !bytes.HasPrefix(r.body, []byte("{\n  ")) {
		t.Errorf("body is not indented: %s", r.body)
	}
}

func compact(t *testing.T, _ *api, r response) {
	t.Helper()
	if bytes.Contains(bytes.TrimSpace(r.body), []byte("\n")) {
		t.Errorf("body is indented: %s", r.body)
	}
}

// items wants a list of these policies.
func items(names ...string) func(*testing.T, *api, response) {
	return func(t *testing.T, _ *api, r response) {
		t.Helper()
		var list v1alpha1.ValidatingAdmissionPolicyList
		r.decode(t, &list)
		var got []string
		for _, p := range list.Items {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, names) {
			t.Errorf("items %v, want %v", got, names)
		}
	}
}

// events wants a stream of events of these types.
func events(want ...string) func(*testing.T, *api, response) {
	return func(t *testing.T, _ *api, r response) {
		t.Helper()
		var got []string
		for line := range bytes.Lines(r.body) {
			var event metav1.WatchEvent
			response{body: line}.decode(t, &event)
			got = append(got, event.Type)
		}
		if !slices.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
	}
}

// left wants these policies in store afterwards.
func left(names ...string) func(*testing.T, *api, response) {
	return func(t *testing.T, a *api, _ response) {
		t.Helper()
		if got := a.policyNames(t, metav1.ListOptions{}); !slices.Equal(got, names) {
			t.Errorf("stored are %v, want %v", got, names)
		}
	}
}

// message wants the message of the stored policy "a".
func message(want string) func(*testing.T, *api, response) {
	return func(t *testing.T, a *api, _ response) {
		t.Helper()
		if got := a.getPolicy(t, "a").Spec.Validations[0].Message; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
	}
}

// managedBy wants the stored policy to have a field manager.
func managedBy(name, manager string) func(*testing.T, *api, response) {
	return func(t *testing.T, a *api, _ response) {
		t.Helper()
		if got := managers(a.getPolicy(t, name)); !slices.Contains(got, manager) {
			t.Errorf("managers %v, want %s among them", got, manager)
		}
	}
}

// team wants the label of the stored policy "a".
func team(want string) func(*testing.T, *api, response) {
	return func(t *testing.T, a *api, _ response) {
		t.Helper()
		if got := a.getPolicy(t, "a").Labels["team"]; got != want {
			t.Errorf("team %q, want %q", got, want)
		}
	}
}

// says wants a text in the answer.
func says(text string) func(*testing.T, *api, response) {
	return func(t *testing.T, _ *api, r response) {
		t.Helper()
		if !strings.Contains(string(r.body), text) {
			t.Errorf("answer does not say %q: %s", text, r.body)
		}
	}
}
