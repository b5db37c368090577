// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
)

// testCodes makes the requests that end in a code of their own, whatever their
// parameters.
func testCodes(t *testing.T, a *api) {
	a.createPolicy(t, newPolicy("a"))
	held := newPolicy("held")
	held.Finalizers = []string{"example.com/hold"}
	a.createPolicy(t, held)
	absent := newPolicy("absent")
	absent.ResourceVersion = "1"
	renamed := newPolicy("b")
	renamed.ResourceVersion = "1"
	binding := encode(t, newBinding("b", "a"))
	apply := string(types.ApplyYAMLPatchType)

	tests := []struct {
		name string
		request
		want int
	}{
		{"create what exists", request{method: "POST", path: policiesPath, body: encode(t, newPolicy("a"))}, 409},
		{"create without a body", request{method: "POST", path: policiesPath}, 400},
		{"create from what is no JSON", request{method: "POST", path: policiesPath, body: []byte("{")}, 400},
		{"create another kind", request{method: "POST", path: policiesPath, body: binding}, 400},
		{"create in an unknown format", request{method: "POST", path: policiesPath, contentType: "text/html", body: []byte("x")}, 415},
		{"create from YAML", request{method: "POST", path: policiesPath + "?dryRun=All", contentType: "application/yaml", body: encode(t, newPolicy("y"))}, 201},
		{"create from too much", request{method: "POST", path: policiesPath, body: bytes.Repeat([]byte(" "), apiserver.MaxRequestBodyBytes+1)}, 413},
		{"update what is absent", request{method: "PUT", path: policiesPath + "/absent", body: encode(t, absent)}, 404},
		{"update under another name", request{method: "PUT", path: policiesPath + "/a", body: encode(t, renamed)}, 400},
		{"apply what is absent", request{method: "PATCH", path: policiesPath + "/new?fieldManager=me", contentType: apply, body: encode(t, newPolicy("new"))}, 201},
		{"apply what exists", request{method: "PATCH", path: policiesPath + "/new?fieldManager=me", contentType: apply, body: encode(t, newPolicy("new"))}, 200},
		{"delete what is absent", request{method: "DELETE", path: policiesPath + "/absent"}, 404},
		{"delete what is held, with its dependents", request{method: "DELETE", path: policiesPath + "/held?orphanDependents=false"}, 202},
		{"delete what is held", request{method: "DELETE", path: policiesPath + "/held"}, 200},
		{"release what is held", request{
			method: "PATCH", path: policiesPath + "/held", contentType: string(types.MergePatchType),
			body: []byte(`{"metadata":{"finalizers":null}}`),
		}, 200},
		{"get what was held", request{method: "GET", path: policiesPath + "/held"}, 404},
		{"an unknown resource", request{method: "GET", path: groupPath + "/unknown"}, 404},
		{"an unknown version", request{method: "GET", path: "/apis/policy.portcullis.dev/v1/validatingadmissionpolicies"}, 404},
		{"an operation that is not there", request{method: "POST", path: policiesPath + "/a"}, 405},
	}
	for _, test := range tests {
		if got := a.do(t, test.request); got.code != test.want {
			t.Errorf("%s: %d, want %d: %s", test.name, got.code, test.want, got.body)
		}
	}
}
