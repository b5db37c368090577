// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects reads manifests and stores what they hold in an API server, for
// the programs of this folder. It knows no kind: the server says what it serves.
package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"
)

// Read returns the objects of a file, which is a stream of YAML or JSON.
func Read(file string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Store writes objects of any kind that a server serves.
type Store struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

// Open returns the store of a server. It asks the server which kinds it serves.
func Open(config *rest.Config) (*Store, error) {
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(kinds)
	if err != nil {
		return nil, fmt.Errorf("ask for the served kinds: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Store{client: client, mapper: restmapper.NewDiscoveryRESTMapper(groups)}, nil
}

// Create creates object. One of its name must not exist, and unknown fields are
// refused.
func (s *Store) Create(ctx context.Context, object *unstructured.Unstructured) error {
	client, err := s.clientOf(object)
	if err != nil {
		return err
	}
	_, err = client.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// Put creates object, or replaces the one of its name.
func (s *Store) Put(ctx context.Context, object *unstructured.Unstructured) error {
	err := s.Create(ctx, object)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	client, err := s.clientOf(object)
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		stored, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		object.SetResourceVersion(stored.GetResourceVersion())
		_, err = client.Update(ctx, object, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
		return err
	})
}

// clientOf returns the client for the kind and the namespace of object.
func (s *Store) clientOf(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	return s.client.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}
