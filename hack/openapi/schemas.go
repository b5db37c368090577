// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	refPrefix     = "#/components/schemas/"
	kindExtension = "x-kubernetes-group-version-kind"
)

// stable matches the documents of the groups and versions that kube-apiserver
// serves by default.
var stable = regexp.MustCompile(`^apis?__(.*__)?v[0-9]+_openapi\.json$`)

// schemas is the content of the file.
type schemas struct {
	// Kinds are the names of the schemas of kinds, such as "apps/v1, Kind=Deployment".
	Kinds map[string]string `json:"kinds"`
	// Schemas have references to each other by their names alone.
	Schemas map[string]*spec.Schema `json:"schemas"`
}

// read takes the schemas out of the documents of a folder.
func read(folder string) (*schemas, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	found := &schemas{Kinds: map[string]string{}, Schemas: map[string]*spec.Schema{}}
	for _, entry := range entries {
		if !stable.MatchString(entry.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		if err := found.add(data); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
	}
	if len(found.Schemas) == 0 {
		return nil, fmt.Errorf("%s: no documents of stable versions", folder)
	}
	return found, nil
}

func (s *schemas) add(data []byte) error {
	var document struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return err
	}
	for name, one := range document.Components.Schemas {
		var kinds []schema.GroupVersionKind
		if err := one.Extensions.GetObject(kindExtension, &kinds); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, kind := range kinds {
			if other, taken := s.Kinds[kind.String()]; taken && other != name {
				return fmt.Errorf("%v is both %s and %s", kind, other, name)
			}
			s.Kinds[kind.String()] = name
		}
		delete(one.Extensions, kindExtension)
		if err := strip(one); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := s.put(name, one); err != nil {
			return err
		}
	}
	return nil
}

// put adds a schema, which must be the same in all documents.
func (s *schemas) put(name string, one *spec.Schema) error {
	other, known := s.Schemas[name]
	if !known {
		s.Schemas[name] = one
		return nil
	}
	a, err := json.Marshal(one)
	if err != nil {
		return err
	}
	b, err := json.Marshal(other)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%s differs from that of another document", name)
	}
	return nil
}

// strip removes descriptions and shortens references, at all depths.
func strip(s *spec.Schema) error {
	s.Description = ""
	if ref := s.Ref.String(); ref != "" {
		short, err := spec.NewRef(strings.TrimPrefix(ref, refPrefix))
		if err != nil {
			return err
		}
		s.Ref = short
	}
	for _, list := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			if err := strip(&list[i]); err != nil {
				return err
			}
		}
	}
	for name, property := range s.Properties {
		if err := strip(&property); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.Properties[name] = property
	}
	for _, inner := range []*spec.Schema{s.Not, itemsOf(s), valuesOf(s)} {
		if inner == nil {
			continue
		}
		if err := strip(inner); err != nil {
			return err
		}
	}
	return nil
}

func itemsOf(s *spec.Schema) *spec.Schema {
	if s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

func valuesOf(s *spec.Schema) *spec.Schema {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}

// encode is the content of the file before it is compressed, the same for the
// same schemas.
func (s *schemas) encode() ([]byte, error) { return json.Marshal(s) }

// readCompressed returns the content of a file. Files are compared by it: what
// compressing makes of it depends on the version of Go.
func readCompressed(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return io.ReadAll(reader)
}

func writeCompressed(file string, content []byte) error {
	var data bytes.Buffer
	writer, err := gzip.NewWriterLevel(&data, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := writer.Write(content); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, data.Bytes(), 0o644)
}
