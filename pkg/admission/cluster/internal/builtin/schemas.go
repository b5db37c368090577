// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// published are the schemas that kube-apiserver publishes, without descriptions.
// Write them again with make update-openapi.
//
//go:embed schemas.json.gz
var published []byte

const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// schemas are unpacked once per process, when they are first asked for.
//
//nolint:gochecknoglobals // A constant in effect.
var schemas = sync.OnceValues(func() (*definitions, error) {
	return unpack(published)
})

// Schema returns the schema of a kind of the table, with the schemas to which it
// refers in the place of the references, as resolver.PopulateRefs puts them there.
// The error for any other kind wraps resolver.ErrSchemaNotFound. The result belongs
// to all callers.
func Schema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	if _, err := Table().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return nil, fmt.Errorf("%v: %w", kind, resolver.ErrSchemaNotFound)
	}
	all, err := schemas()
	if err != nil {
		return nil, err
	}
	name, found := all.Kinds[kind.String()]
	if !found {
		return nil, fmt.Errorf("%v: %w", kind, resolver.ErrSchemaNotFound)
	}
	return all.populated(name)
}

// ObjectMeta returns the schema of the metadata of objects. The result belongs to
// all callers.
func ObjectMeta() (*spec.Schema, error) {
	all, err := schemas()
	if err != nil {
		return nil, err
	}
	return all.populated(objectMeta)
}

// definitions are the schemas by their names, which refer to each other. What is
// decoded stays so: it grows no further than the embedded file does.
type definitions struct {
	Kinds   map[string]string          `json:"kinds"` // names, by schema.GroupVersionKind.String
	Schemas map[string]json.RawMessage `json:"schemas"`

	mu      sync.Mutex
	decoded map[string]*spec.Schema
}

func unpack(compressed []byte) (*definitions, error) {
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("schemas.json.gz: %w", err)
	}
	d := &definitions{decoded: map[string]*spec.Schema{}}
	if err := json.NewDecoder(reader).Decode(d); err != nil {
		return nil, fmt.Errorf("schemas.json.gz: %w", err)
	}
	return d, nil
}

// populated returns a schema without references.
func (d *definitions) populated(name string) (*spec.Schema, error) {
	var broken error
	populated, err := resolver.PopulateRefs(func(name string) (*spec.Schema, bool) {
		one, err := d.decode(name)
		if err != nil {
			broken = err
		}
		return one, err == nil
	}, name)
	if broken != nil {
		return nil, broken
	}
	return populated, err
}

func (d *definitions) decode(name string) (*spec.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one, done := d.decoded[name]; done {
		return one, nil
	}
	one := &spec.Schema{}
	if err := json.Unmarshal(d.Schemas[name], one); err != nil {
		return nil, fmt.Errorf("schemas.json.gz: %s: %w", name, err)
	}
	d.decoded[name] = one
	return one, nil
}
