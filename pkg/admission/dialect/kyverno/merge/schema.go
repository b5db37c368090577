// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"slices"
	"strings"
)

// schema says what matters of a type: whether its lists are merged, and by which keys.
// The zero schema says nothing, so lists are replaced. A nil schema is that of a value
// that no built-in kind describes.
type schema struct {
	// fields are those of a map that lead to lists that are merged.
	fields []field
	// merged says that it is a list that is merged.
	merged bool
	// keys are those by which its elements are told apart: one or two, or none when the
	// elements are scalars, which are their own keys.
	keys []key
	// elements is the place of the schema of its elements.
	elements int
}

// field is a field of a map with the place of its schema.
type field struct {
	name   string
	schema int
}

// key is a merge key with the value that the API server gives it when it is left out.
type key struct{ name, fallback string }

// kind is a built-in kind with the place of its schema.
type kind struct {
	apiVersion, name string
	schema           int
}

// schemaOf returns the schema of a kind, or nil when it is not built in.
func schemaOf(apiVersion, name string) *schema {
	i, ok := slices.BinarySearchFunc(kinds[:], kind{apiVersion: apiVersion, name: name}, func(a, b kind) int {
		return cmp.Or(strings.Compare(a.apiVersion, b.apiVersion), strings.Compare(a.name, b.name))
	})
	if !ok {
		return nil
	}
	return &schemas[kinds[i].schema]
}

// schemaOfAny returns the schema of the first of the objects that says that it is of a
// built-in kind. Objects within custom resources are recognized by this as well.
func schemaOfAny(objects ...map[string]any) *schema {
	for _, object := range objects {
		apiVersion, _ := object["apiVersion"].(string)
		kind, _ := object["kind"].(string)
		if apiVersion == "" || kind == "" {
			continue
		}
		if s := schemaOf(apiVersion, kind); s != nil {
			return s
		}
	}
	return nil
}

// field returns the schema of a field.
func (s *schema) field(name string) *schema {
	if s == nil {
		return nil
	}
	for i := range s.fields {
		if s.fields[i].name == name {
			return &schemas[s.fields[i].schema]
		}
	}
	return &schemas[0]
}

// isMerged says whether a list is merged rather than replaced.
func (s *schema) isMerged() bool { return s != nil && s.merged }

// elementSchema returns the schema of the elements of a list.
func (s *schema) elementSchema() *schema {
	if s == nil {
		return nil
	}
	return &schemas[s.elements]
}

// Schema says which lists of a value are merged, and by which keys. The zero Schema is
// that of an object of which nothing is known.
type Schema struct{ schema *schema }

// Of returns the schema of an object where s is what the place of the object says: it
// may say nothing, and the object be of a built-in kind.
func (s Schema) Of(object map[string]any) Schema {
	if s.schema != nil {
		return s
	}
	return Schema{schemaOfAny(object)}
}

// Field returns the schema of a field of an object.
func (s Schema) Field(name string) Schema { return Schema{s.schema.field(name)} }

// Elements returns the schema of the elements of a list.
func (s Schema) Elements() Schema { return Schema{s.schema.elementSchema()} }

// Key returns one of the keys, at most two, by which the elements of a list are told
// apart, and the value that the API server gives it when it is left out. Lists that are
// replaced have none.
func (s Schema) Key(number int) (name, fallback string, ok bool) {
	if !s.schema.isMerged() || number >= len(s.schema.keys) {
		return "", "", false
	}
	found := s.schema.keys[number]
	return found.name, found.fallback, true
}
