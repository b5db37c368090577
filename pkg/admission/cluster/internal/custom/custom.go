// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package custom makes of the fields of a custom resource what an API server would
// make of them by the schema of its CustomResourceDefinition: it removes what the
// schema does not know and sets defaults. It validates nothing else and does not
// know definitions, versions or conversion.
package custom

import (
	"errors"
	"fmt"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// maxDefaulted bounds by how many bytes defaults may make an object larger: a
	// default may be large, and an object may have many places for it.
	maxDefaulted = 16 << 20
	// maxVisits bounds the properties that are looked at for defaults: a schema may
	// have many, and an object many places for them. It is about half a second.
	maxVisits = 4 << 20
	// maxErrorBytes bounds what is said of metadata of the wrong type.
	maxErrorBytes = 512
)

// Prune removes the fields that the schema does not know and the nulls that it
// does not allow, unless they have a default, from an object and from the metadata
// of it and of the resources embedded in it. It fails where such metadata is of
// the wrong type. The rules are those of the unstructuredSchemaCoercer in
// k8s.io/apiextensions-apiserver/pkg/apiserver, which API servers apply whenever
// they decode or convert a custom resource.
func Prune(object map[string]any, s *structuralschema.Structural) error {
	pruning.Prune(object, s, true)
	dropNulls(object, s)
	// An error within a nil *field.Error would not be nil. Its value is left out:
	// who hears of the error need not be able to read the object.
	if err := objectmeta.Coerce(nil, object, s, true, false); err != nil {
		text := err.Field + ": " + err.Detail
		return errors.New(strings.ToValidUTF8(text[:min(len(text), maxErrorBytes)], ""))
	}
	return nil
}

// dropNulls does what PruneNonNullableNullsWithoutDefaults in
// k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting does. That
// package is not imported, here and for Default, because its defaults have no
// bound, and because it registers feature gates and metrics.
func dropNulls(value any, s *structuralschema.Structural) {
	if s == nil {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			known := fieldOf(s, name)
			if isBareNull(inner, known) && known.Default.Object == nil {
				delete(value, name)
				continue
			}
			dropNulls(inner, known)
		}
	case []any:
		for _, inner := range value {
			dropNulls(inner, s.Items)
		}
	}
}

// Default sets the defaults of the schema, in place of absent fields and of nulls
// that it does not allow, as Default in
// k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting does, and fails
// when that makes the object too large or takes too long.
func Default(object map[string]any, s *structuralschema.Structural) error {
	d := defaulter{left: maxDefaulted, visits: maxVisits}
	return d.complete(object, s)
}

type defaulter struct {
	left   int // bytes of defaults
	visits int // of properties
}

func (d *defaulter) complete(value any, s *structuralschema.Structural) error {
	if s == nil {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		return d.completeMap(value, s)
	case []any:
		for i := range value {
			var err error
			if value[i], err = d.replaced(value[i], s.Items); err != nil {
				return err
			}
			if err := d.complete(value[i], s.Items); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *defaulter) completeMap(fields map[string]any, s *structuralschema.Structural) error {
	if d.visits -= len(s.Properties); d.visits < 0 {
		return fmt.Errorf("its CustomResourceDefinition has more than %d properties to look for in it; use smaller schemas, or lists with fewer items", maxVisits)
	}
	for name, property := range s.Properties {
		if _, found := fields[name]; found || property.Default.Object == nil {
			continue
		}
		value, err := d.copied(property.Default.Object)
		if err != nil {
			return err
		}
		fields[name] = value
	}
	// Defaults have places for defaults too.
	for name, value := range fields {
		known := fieldOf(s, name)
		value, err := d.replaced(value, known)
		if err != nil {
			return err
		}
		fields[name] = value
		if err := d.complete(value, known); err != nil {
			return err
		}
	}
	return nil
}

// replaced returns the default in the place of a null that is not allowed.
func (d *defaulter) replaced(value any, s *structuralschema.Structural) (any, error) {
	if !isBareNull(value, s) {
		return value, nil
	}
	return d.copied(s.Default.Object)
}

func (d *defaulter) copied(value any) (any, error) {
	if d.left -= Size(value); d.left < 0 {
		return nil, fmt.Errorf("the defaults of its CustomResourceDefinition make it larger by more than %d bytes; use smaller defaults, or lists with fewer items", maxDefaulted)
	}
	return runtime.DeepCopyJSONValue(value), nil
}

// Size returns about how many bytes a value takes, one of JSON.
func Size(value any) int {
	const each = 16
	total := each
	switch value := value.(type) {
	case string:
		total += len(value)
	case map[string]any:
		for name, inner := range value {
			total += len(name) + Size(inner)
		}
	case []any:
		for _, inner := range value {
			total += Size(inner)
		}
	}
	return total
}

// fieldOf returns the schema of a field, or nil when there is none.
func fieldOf(s *structuralschema.Structural, name string) *structuralschema.Structural {
	if property, found := s.Properties[name]; found {
		return &property
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

// isBareNull says that value is a null where the schema does not allow one.
func isBareNull(value any, s *structuralschema.Structural) bool {
	return value == nil && s != nil && !s.Nullable
}
