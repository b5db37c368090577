// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// robots defines kinds whose versions are as different as schemas can be.
const robots = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: robots.b.example}
spec:
  group: b.example
  scope: Namespaced
  names: {plural: robots, singular: robot, kind: Robot, listKind: RobotList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        description: A robot.
        type: object
        required: [spec]
        properties:
          metadata: {type: object, properties: {name: {type: string, maxLength: 10}}}
          spec:
            type: object
            properties:
              arms: {type: integer, format: int32, minimum: 0, default: 2}
              description: {type: string, nullable: true, enum: [big, small]}
              port: {x-kubernetes-int-or-string: true}
              share: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], pattern: '^[0-9]+%$'}
              labels: {type: object, additionalProperties: {type: string}}
              anything: {x-kubernetes-preserve-unknown-fields: true}
              open: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: boolean}}}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [id]
                items: {type: object, required: [id], properties: {id: {type: string}, weight: {type: number}}}
              template: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object, properties: {size: {type: integer}}}}}
              templates:
                type: array
                items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, required: [kind]}
            x-kubernetes-validations: [{rule: "self.arms >= 0"}]
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {legs: {type: integer}}}}}}
  - name: v3
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v4
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {properties: {untyped: {type: integer}}}}}}
  - {name: v5, served: true, storage: false}
  - name: v6
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
`

func robot(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "b.example", Version: version, Kind: "Robot"}
}

func schemaOf(t *testing.T, view cluster.View, kind schema.GroupVersionKind) *spec.Schema {
	t.Helper()
	found, err := view.Schema(kind)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// paths are the fields of a schema with their types and formats, sorted.
func paths(s *spec.Schema, prefix string) []string {
	found := []string{fmt.Sprintf("%s %s%s", prefix, strings.Join(s.Type, ","), s.Format)}
	for name, property := range s.Properties {
		found = append(found, paths(&property, prefix+"."+name)...)
	}
	if s.Items != nil {
		found = append(found, paths(s.Items.Schema, prefix+"[]")...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		found = append(found, paths(s.AdditionalProperties.Schema, prefix+"{}")...)
	}
	slices.Sort(found)
	return found
}

// TestSchemaOfDefinition compares what is made of a definition with what
// apiextensions-apiserver publishes.
func TestSchemaOfDefinition(t *testing.T) {
	objects := decode(t, robots)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, definition); err != nil {
		t.Fatal(err)
	}
	view := newBase(t, robots)
	for _, version := range []string{"v1", "v2", "v3", "v4", "v5"} {
		t.Run(version, func(t *testing.T) {
			published, err := builder.BuildOpenAPIV3(definition, version, builder.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want, err := resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
				found, ok := published.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
				return found, ok
			}, "example.b."+version+".Robot")
			if err != nil {
				t.Fatal(err)
			}
			got := schemaOf(t, view, robot(version))
			if diff := cmp.Diff(paths(want, ""), paths(got, "")); diff != "" {
				t.Errorf("the fields differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(plain(t, want), plain(t, got)); diff != "" {
				t.Errorf("the schemas differ (-want +got):\n%s", diff)
			}
		})
	}
}

// plain is a schema as text, without what differs between the versions of upstream
// that are compared: descriptions, and that items of metadata are empty by default.
func plain(t *testing.T, s *spec.Schema) string {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	clone := &spec.Schema{}
	if err := json.Unmarshal(data, clone); err != nil {
		t.Fatal(err)
	}
	delete(clone.Extensions, "x-kubernetes-group-version-kind")
	strip(clone)
	data, err = json.MarshalIndent(clone, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func strip(s *spec.Schema) {
	s.Description = ""
	if s.Default == "" {
		s.Default = nil
	}
	for name, property := range s.Properties {
		strip(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		strip(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		strip(s.AdditionalProperties.Schema)
	}
}

func TestSchemaOfLayers(t *testing.T) {
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	base := newBase(t, robots)
	over := newOver(t, base, gadgets)
	replaced := newOver(t, over, strings.ReplaceAll(robots, "legs", "wheels"))
	renamed := newOver(t, base, strings.ReplaceAll(robots, "kind: Robot,", "kind: Android,"))
	tests := []struct {
		name    string
		view    cluster.View
		kind    schema.GroupVersionKind
		with    string
		missing bool
	}{
		{"built in", base, pod, ".spec.containers[].image string", false},
		{"built in, below", over, pod, ".spec.containers[].image string", false},
		{"defined", base, robot("v2"), ".spec.legs integer", false},
		{"defined below", over, robot("v2"), ".spec.legs integer", false},
		{"replaced", replaced, robot("v2"), ".spec.wheels integer", false},
		{"without a schema", over, gadget, " object", false},
		{"not served", base, robot("v6"), "", true},
		{"no such version", base, robot("v7"), "", true},
		{"not defined", base, gadget, "", true},
		{"taken by another kind", renamed, robot("v2"), "", true},
		{"not built in", over, schema.GroupVersionKind{Version: "v1", Kind: "PodList"}, "", true},
		{"no kind", over, schema.GroupVersionKind{}, "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found, err := test.view.Schema(test.kind)
			if test.missing {
				if !errors.Is(err, resolver.ErrSchemaNotFound) {
					t.Errorf("got %v, %v, want no schema", found, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := paths(found, ""); !slices.Contains(got, test.with) {
				t.Errorf("there is no %s among %s", test.with, got)
			}
		})
	}
}

func TestSchemaFaults(t *testing.T) {
	const start = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: robots.b.example}
spec:
  group: b.example
  scope: Cluster
  names: {plural: robots, kind: Robot}
  versions:
  - {name: v1, served: true, storage: true, schema: `
	var embedded strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&embedded, "f%d: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}, ", i)
	}
	tests := map[string]struct{ schema, want string }{
		"no mapping":    {"none", "version v1: the schema cannot be used: "},
		"wrong type":    {"{openAPIV3Schema: {type: 5}}", "version v1: the schema cannot be used: json: cannot unmarshal number"},
		"too large":     {"{openAPIV3Schema: {type: object, description: " + strings.Repeat("a", 3<<20) + "}}", "more than 3145728; leave out descriptions"},
		"too many":      {"{openAPIV3Schema: {type: object, properties: {" + embedded.String() + "}}}", "more than 1000 embedded resources"},
		"a bare string": {"{openAPIV3Schema: object}", "version v1: the schema cannot be used: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := newBase(t, start+test.schema+"}\n").Schema(robot("v1"))
			if err == nil || errors.Is(err, resolver.ErrSchemaNotFound) || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "CustomResourceDefinition robots.b.example: ") {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestSchemaIsMade wants that schemas can be asked for at the same time, and that
// asking changes nothing.
func TestSchemaIsMade(t *testing.T) {
	view := newBase(t, robots)
	want := plain(t, schemaOf(t, view, robot("v1")))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if got := plain(t, schemaOf(t, view, robot("v1"))); got != want {
				t.Errorf("got another schema:\n%s", cmp.Diff(want, got))
			}
		})
	}
	group.Wait()
}
