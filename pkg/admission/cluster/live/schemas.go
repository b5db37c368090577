// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/lru"
)

const (
	// maxSchemas and maxDocuments bound what is kept; maxDocumentBytes and
	// documentTimeout the reading of one document, which has the schemas of a group
	// version.
	maxSchemas       = 128
	maxDocuments     = 4
	maxDocumentBytes = 32 << 20
	documentTimeout  = 10 * time.Second

	referencePrefix = "#/components/schemas/"
)

// schemas reads the schemas of kinds. What is read once is kept for as long as the API
// server names it by the same hash.
type schemas struct {
	survey    *survey
	flights   singleflight.Group
	made      *lru.Cache // of *spec.Schema, by schemaKey
	documents *lru.Cache // of *document, by URL
}

type schemaKey struct {
	kind schema.GroupVersionKind
	url  string
}

func newSchemas(survey *survey) *schemas {
	return &schemas{survey: survey, made: lru.New(maxSchemas), documents: lru.New(maxDocuments)}
}

// of returns the schema of a kind that is served. ClientDiscoveryResolver in
// k8s.io/apiserver/pkg/cel/openapi/resolver does the same, and reads and decodes
// everything each time.
func (s *schemas) of(kind schema.GroupVersionKind, now *snapshot) (*spec.Schema, error) {
	if now.documents == nil {
		return nil, fmt.Errorf("%v: the OpenAPI documents of the cluster have not been read yet: %w", kind, s.unread())
	}
	source, found := now.documents[kind.GroupVersion()]
	if !found {
		return nil, fmt.Errorf("%v: %w", kind, resolver.ErrSchemaNotFound)
	}
	key := schemaKey{kind, source.ServerRelativeURL()}
	if known, found := s.made.Get(key); found {
		if made, ok := known.(*spec.Schema); ok {
			return made, nil
		}
	}
	all, err := s.document(source)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", kind, err)
	}
	made, err := all.schemaOf(kind)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", kind, err)
	}
	s.made.Add(key, made)
	return made, nil
}

func (s *schemas) unread() error {
	if err := s.survey.status().SchemasErr; err != nil {
		return err
	}
	return errors.New("the API server has not been asked")
}

func (s *schemas) document(source openapi.GroupVersionWithContext) (*document, error) {
	url := source.ServerRelativeURL()
	if known, found := s.documents.Get(url); found {
		if read, ok := known.(*document); ok {
			return read, nil
		}
	}
	read, err, _ := s.flights.Do(url, func() (any, error) {
		//nolint:forbidigo // What is asked is in no context: see cluster.View.
		ctx, cancel := context.WithTimeout(context.Background(), documentTimeout)
		defer cancel()
		data, err := source.SchemaWithContext(ctx, runtime.ContentTypeJSON)
		if err != nil {
			return nil, &unreadable{"its OpenAPI document cannot be read: " + err.Error()}
		}
		read, err := newDocument(data)
		if err != nil {
			return nil, err
		}
		s.documents.Add(url, read)
		return read, nil
	})
	if err != nil {
		return nil, err
	}
	found, _ := read.(*document) // nothing else is read
	return found, nil
}

// document has the schemas of a group version by their names. They refer to each
// other, and are decoded when they are needed.
type document struct {
	raw    map[string]json.RawMessage
	byKind map[schema.GroupVersionKind]string

	mu      sync.Mutex
	decoded map[string]*spec.Schema
}

func newDocument(data []byte) (*document, error) {
	if len(data) > maxDocumentBytes {
		return nil, fmt.Errorf("its OpenAPI document has %d bytes, more than %d", len(data), maxDocumentBytes)
	}
	var given struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &given); err != nil {
		return nil, fmt.Errorf("its OpenAPI document: %w", err)
	}
	d := &document{raw: given.Components.Schemas, byKind: map[schema.GroupVersionKind]string{}, decoded: map[string]*spec.Schema{}}
	for name, raw := range d.raw {
		var of struct {
			Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		}
		if err := json.Unmarshal(raw, &of); err != nil {
			return nil, fmt.Errorf("its OpenAPI document: %s: %w", name, err)
		}
		for _, kind := range of.Kinds {
			d.byKind[kind] = name
		}
	}
	return d, nil
}

// schemaOf returns the schema of a kind, with what it refers to in the place of the
// references.
func (d *document) schemaOf(kind schema.GroupVersionKind) (*spec.Schema, error) {
	name, found := d.byKind[kind]
	if !found {
		return nil, resolver.ErrSchemaNotFound
	}
	var broken error
	made, err := resolver.PopulateRefs(func(reference string) (*spec.Schema, bool) {
		one, err := d.decode(strings.TrimPrefix(reference, referencePrefix))
		if err != nil {
			broken = err
		}
		return one, err == nil
	}, name)
	if broken != nil {
		return nil, broken
	}
	return made, err
}

func (d *document) decode(name string) (*spec.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one, done := d.decoded[name]; done {
		return one, nil
	}
	raw, found := d.raw[name]
	if !found {
		return nil, fmt.Errorf("its OpenAPI document has no schema %q", name)
	}
	one := &spec.Schema{}
	if err := json.Unmarshal(raw, one); err != nil {
		return nil, fmt.Errorf("its OpenAPI document: %s: %w", name, err)
	}
	d.decoded[name] = one
	return one, nil
}

// groupVersionOf returns the group version of the path of a document.
func groupVersionOf(path string) (schema.GroupVersion, bool) {
	parts := strings.Split(path, "/")
	switch {
	case len(parts) == 2 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}, true
	case len(parts) == 3 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, true
	default:
		return schema.GroupVersion{}, false
	}
}
