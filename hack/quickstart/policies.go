// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

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

// storePolicies makes the server hold the objects of file as they are written
// there, whatever it held before. It returns the name of a binding among them.
func storePolicies(ctx context.Context, config *rest.Config, file string, out io.Writer) (binding string, err error) {
	objects, err := readObjects(file)
	if err != nil {
		return "", err
	}
	s, err := newStore(config)
	if err != nil {
		return "", err
	}
	for _, object := range objects {
		if err := s.put(ctx, object); err != nil {
			return "", fmt.Errorf("store %s %s of %s: %w", object.GetKind(), object.GetName(), file, err)
		}
		fmt.Fprintf(out, "Stored   %s %s\n", object.GetKind(), object.GetName())
		if strings.HasSuffix(object.GetKind(), "Binding") {
			binding = object.GetName()
		}
	}
	return binding, nil
}

func readObjects(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if object.Object != nil {
			objects = append(objects, object)
		}
	}
}

// store writes objects of any kind that the server serves.
type store struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func newStore(config *rest.Config) (*store, error) {
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
	return &store{client: client, mapper: restmapper.NewDiscoveryRESTMapper(groups)}, nil
}

// put creates object, or replaces the one of its name.
func (s *store) put(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	client := s.client.Resource(mapping.Resource)
	_, err = client.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if !apierrors.IsAlreadyExists(err) {
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
