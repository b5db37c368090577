// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const schemaPrefix = "dev.portcullis.policy.v1alpha1."

func (a *api) openAPI(t *testing.T) *spec3.OpenAPI {
	t.Helper()
	document := &spec3.OpenAPI{}
	a.do(t, request{method: "GET", path: "/openapi/v3" + groupPath}).decode(t, document)
	return document
}

// testOpenAPI looks for what kubectl explain, validation on the client and
// server-side apply need.
func testOpenAPI(t *testing.T, a *api) {
	schemas := a.openAPI(t).Components.Schemas
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		schema, ok := schemas[schemaPrefix+kind]
		if !ok {
			t.Errorf("%s has no schema", kind)
			continue
		}
		if schema.Description == "" || schema.Properties["spec"].Description == "" {
			t.Errorf("%s has no documentation", kind)
		}
		gvks, ok := schema.Extensions["x-kubernetes-group-version-kind"].([]any)
		if !ok || len(gvks) != 1 {
			t.Errorf("%s has group version kinds %v, want one", kind, schema.Extensions["x-kubernetes-group-version-kind"])
		}
	}
	policySpec := refTo(t, schemas, schemas[schemaPrefix+"ValidatingAdmissionPolicy"].Properties["spec"])
	for _, field := range []string{"failurePolicy", "matchConstraints", "validations", "variables", "matchConditions", "auditAnnotations", "paramKind"} {
		if policySpec.Properties[field].Description == "" {
			t.Errorf("spec.%s has no documentation", field)
		}
	}
	if got := policySpec.Properties["variables"].Extensions["x-kubernetes-list-map-keys"]; got == nil {
		t.Error("spec.variables has no merge key")
	}

	var v2 spec.Swagger
	a.do(t, request{method: "GET", path: "/openapi/v2", accept: "application/json"}).decode(t, &v2)
	if _, ok := v2.Definitions[schemaPrefix+"ValidatingAdmissionPolicy"]; !ok {
		t.Error("OpenAPI v2 does not define ValidatingAdmissionPolicy")
	}
}

func refTo(t *testing.T, schemas map[string]*spec.Schema, property spec.Schema) *spec.Schema {
	t.Helper()
	ref := property.Ref.String()
	if ref == "" && len(property.AllOf) == 1 {
		ref = property.AllOf[0].Ref.String()
	}
	schema, ok := schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
	if !ok {
		t.Fatalf("no schema at %q", ref)
	}
	return schema
}
