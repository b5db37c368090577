// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
)

const (
	// maxSchemaBytes bounds a schema by what kube-apiserver would accept, the
	// MaxRequestBodyBytes of k8s.io/apiserver/pkg/server: what is made of it is much
	// larger.
	maxSchemaBytes = 3 << 20
	// maxSchemaReads bounds how many bytes of a schema are read when it is decoded,
	// over and over again what is deep in it. It is about half a second.
	maxSchemaReads = 64 << 20
	// maxEmbedded bounds how many embedded resources a schema has: all their
	// metadata has fields.
	maxEmbedded = 1000

	embeddedExtension = "x-kubernetes-embedded-resource"
)

// Schema returns the schema of a version as kube-apiserver publishes it, which
// BuildOpenAPIV3 in k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder
// makes: that of the definition, with apiVersion, kind and metadata at the root and
// in embedded resources, or an object without fields when it is not structural.
func (d *Definition) Schema(version string) (*spec.Schema, error) {
	structural, err := d.structural(version)
	if err != nil {
		return nil, d.unusable(version, err)
	}
	if structural == nil {
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}, nil
	}
	metadata, err := builtin.ObjectMeta()
	if err != nil {
		return nil, err
	}
	published := structural.Unfold().ToKubeOpenAPI()
	e := embedding{metadata: metadata}
	e.complete(published)
	if e.count > maxEmbedded {
		return nil, fmt.Errorf("CustomResourceDefinition %s: version %s: the schema has more than %d embedded resources; remove some", d.Resource(), version, maxEmbedded)
	}
	e.add(published)
	return published, nil
}

// unusable says that the schema of a version cannot be used.
func (d *Definition) unusable(version string, err error) error {
	return fmt.Errorf("CustomResourceDefinition %s: version %s: the schema cannot be used: %w", d.Resource(), version, err)
}

// structural returns the schema of a version, or nil when there is none that
// kube-apiserver would publish.
func (d *Definition) structural(version string) (*structuralschema.Structural, error) {
	given, err := d.given(version)
	if err != nil || given == nil {
		return nil, err
	}
	var cost decoding
	if cost.add(given); cost.reads > maxSchemaReads {
		return nil, errors.New("it is large and has too many lists in lists; leave out descriptions, or use x-kubernetes-preserve-unknown-fields further out")
	}
	data, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	if len(data) > maxSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, more than %d; leave out descriptions", len(data), maxSchemaBytes)
	}
	external := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(data, external); err != nil {
		return nil, err
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(external, internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil || len(structuralschema.ValidateStructural(nil, structural)) > 0 {
		return nil, nil //nolint:nilerr,nilnil // Not structural, and so not published.
	}
	return structural, nil
}

// decoding is what it costs to decode a schema.
type decoding struct{ reads int }

// add adds a part of a schema and returns its size, roughly. JSONSchemaProps has
// fields that decode what is in them anew, and so do those that are in there.
func (d *decoding) add(part any) (size int) {
	switch part := part.(type) {
	case string:
		return len(part)
	case []any:
		for _, inner := range part {
			size += 1 + d.add(inner)
		}
	case map[string]any:
		for name, inner := range part {
			inside := d.add(inner)
			switch name {
			case "items", "additionalItems", "additionalProperties", "dependencies":
				d.reads += inside
			}
			size += len(name) + 4 + inside
		}
	}
	return size + 1
}

// given returns the schema of a version as it is written in the definition.
func (d *Definition) given(version string) (any, error) {
	versions, _, err := unstructured.NestedFieldNoCopy(d.source.Object, "spec", "versions")
	if err != nil {
		return nil, err
	}
	list, _ := versions.([]any)
	i := slices.IndexFunc(d.spec.Versions, func(v specVersion) bool { return v.Name == version })
	if i < 0 || i >= len(list) {
		return nil, fmt.Errorf("there is no version %q", version)
	}
	fields, _ := list[i].(map[string]any)
	given, _, err := unstructured.NestedFieldNoCopy(fields, "schema", "openAPIV3Schema")
	return given, err
}

// embedding adds to schemas of resources what every resource has.
type embedding struct {
	metadata *spec.Schema
	count    int // embedded resources that were found
}

// complete looks for embedded resources in s, at all depths.
func (e *embedding) complete(s *spec.Schema) {
	if s == nil {
		return
	}
	for name, property := range s.Properties {
		e.complete(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		e.complete(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		e.complete(s.AdditionalProperties.Schema)
	}
	if embedded, found := s.Extensions.GetBool(embeddedExtension); found && embedded {
		e.count++
		e.add(s)
		for _, name := range []string{"kind", "apiVersion"} {
			if !slices.Contains(s.Required, name) {
				s.Required = append(slices.Clip(s.Required), name)
			}
		}
	}
}

// add gives a resource its apiVersion, kind and metadata.
func (e *embedding) add(s *spec.Schema) {
	s.SetProperty("apiVersion", *spec.StringProperty())
	s.SetProperty("kind", *spec.StringProperty())
	s.SetProperty("metadata", *e.metadata)
}
