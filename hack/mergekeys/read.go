// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// shape is what matters of a schema.
type shape struct {
	// fields are those of a map whose shapes matter.
	fields map[string]*shape
	// values is the shape of the values of all other keys. None matters so far.
	values *shape
	// elements is the shape of the elements of a list that is merged, nil for other
	// values.
	elements *shape
	// keys are those by which the elements are told apart. There are none for a list
	// of scalars.
	keys []string
	// matters says that a list that is merged can be reached.
	matters bool
}

// kind is a built-in kind.
type kind struct {
	apiVersion, name string
	shape            *shape
}

// reader turns schemas into shapes. Every definition is turned once, since they refer
// to themselves.
type reader struct {
	root  *spec.Schema
	known map[string]*shape
	all   []*shape
}

// read returns the kinds that kyaml knows, in order.
func read() ([]kind, error) {
	// The first look-up makes kyaml decode the document.
	if openapi.SchemaForResourceType(yaml.TypeMeta{APIVersion: "v1", Kind: "Pod"}) == nil {
		return nil, fmt.Errorf("kyaml %s knows no Pod", openapi.GetSchemaVersion())
	}
	r := reader{root: openapi.Schema(), known: map[string]*shape{}}
	var kinds []kind
	for name, definition := range r.root.Definitions {
		groupVersionKinds, _ := definition.Extensions["x-kubernetes-group-version-kind"].([]any)
		for _, one := range groupVersionKinds {
			found, err := kindOf(one)
			if err != nil {
				return nil, fmt.Errorf("definition %s: %w", name, err)
			}
			if found.shape, err = r.definition(name); err != nil {
				return nil, err
			}
			kinds = append(kinds, found)
		}
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		return cmp.Or(strings.Compare(a.apiVersion, b.apiVersion), strings.Compare(a.name, b.name))
	})
	for i, k := range kinds[1:] {
		if k.apiVersion == kinds[i].apiVersion && k.name == kinds[i].name {
			return nil, fmt.Errorf("%s %s is defined twice", k.apiVersion, k.name)
		}
	}
	return kinds, r.settle()
}

func kindOf(groupVersionKind any) (kind, error) {
	m, _ := groupVersionKind.(map[string]any)
	group, _ := m["group"].(string)
	version, _ := m["version"].(string)
	name, _ := m["kind"].(string)
	if version == "" || name == "" {
		return kind{}, fmt.Errorf("%v is no kind", groupVersionKind)
	}
	if group != "" {
		version = group + "/" + version
	}
	return kind{apiVersion: version, name: name}, nil
}

func (r *reader) definition(name string) (*shape, error) {
	if s, ok := r.known[name]; ok {
		return s, nil
	}
	definition, ok := r.root.Definitions[name]
	if !ok {
		return nil, fmt.Errorf("no definition %s", name)
	}
	s := r.shape()
	r.known[name] = s
	return s, r.fill(s, &definition)
}

func (r *reader) shape() *shape {
	s := &shape{}
	r.all = append(r.all, s)
	return s
}

func (r *reader) read(schema *spec.Schema) (*shape, error) {
	if ref := schema.Ref.String(); ref != "" {
		return r.definition(strings.TrimPrefix(ref, "#/definitions/"))
	}
	s := r.shape()
	return s, r.fill(s, schema)
}

// fill reads a schema, as kyaml's openapi.ResourceSchema and yaml/schema do: a list is
// merged when its patch strategies have merge among them.
func (r *reader) fill(s *shape, schema *spec.Schema) error {
	strategy, keys := (&openapi.ResourceSchema{Schema: schema}).PatchStrategyAndKeyList()
	merged := slices.Contains(strings.Split(strategy, ","), "merge")
	if merged && schema.Type.Contains("array") && schema.Items != nil && schema.Items.Schema != nil {
		if len(keys) > 2 {
			return fmt.Errorf("more than two merge keys: %v", keys)
		}
		elements, err := r.read(schema.Items.Schema)
		if err != nil {
			return err
		}
		s.matters, s.keys, s.elements = true, keys, elements
	}
	s.fields = map[string]*shape{}
	for name, property := range schema.Properties {
		field, err := r.read(&property)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.fields[name] = field
	}
	if schema.AdditionalProperties == nil || schema.AdditionalProperties.Schema == nil {
		return nil
	}
	values, err := r.read(schema.AdditionalProperties.Schema)
	s.values = values
	return err
}

// settle finds out which shapes matter and forgets the others.
func (r *reader) settle() error {
	for changed := true; changed; {
		changed = false
		for _, s := range r.all {
			if !s.matters && s.leadsFurther() {
				s.matters, changed = true, true
			}
		}
	}
	for _, s := range r.all {
		if s.values != nil && s.values.matters {
			return errors.New("a list that is merged is reached through the values of a map, which the table cannot say")
		}
		for name, field := range s.fields {
			if !field.matters {
				delete(s.fields, name)
			}
		}
	}
	return nil
}

func (s *shape) leadsFurther() bool {
	if s.values != nil && s.values.matters {
		return true
	}
	for _, field := range s.fields {
		if field.matters {
			return true
		}
	}
	return false
}
