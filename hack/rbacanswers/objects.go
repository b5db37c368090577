// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/restmapper"
)

// create makes the objects of a file.
func (s *server) create(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(s.typed.Discovery())
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var obj unstructured.Unstructured
		if err := documents.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		kind := obj.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
		if _, err := s.dynamic.Resource(mapping.Resource).Namespace(obj.GetNamespace()).Create(ctx, &obj, strict); err != nil {
			return fmt.Errorf("%s: %s %s/%s: %w", file, obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
		}
	}
}

// writeBootstrap writes the RBAC objects of the server once they have stopped
// changing, one a line, by resource, namespace and name. It leaves out what
// another server would have set otherwise.
func (s *server) writeBootstrap(ctx context.Context, out io.Writer, settle time.Duration) error {
	lines, err := settled(ctx, settle, s.rbacObjects, bytes.Equal)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "# The RBAC objects of kube-apiserver %s with --authorization-mode=RBAC beside the controller\n", s.version)
	fmt.Fprintln(out, "# clusterrole-aggregation-controller, before anybody has made any, as hack/rbacanswers --bootstrap has recorded them.")
	_, err = out.Write(lines)
	return err
}

func (s *server) rbacObjects(ctx context.Context) ([]byte, error) {
	var lines bytes.Buffer
	for _, resource := range []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"} {
		// The API server lists by namespace and name.
		found, err := s.dynamic.Resource(rbacv1.SchemeGroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range found.Items {
			line, err := compact(&found.Items[i])
			if err != nil {
				return nil, err
			}
			lines.Write(line)
		}
	}
	return lines.Bytes(), nil
}

func compact(obj *unstructured.Unstructured) ([]byte, error) {
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", name)
	}
	line, err := json.Marshal(obj.Object)
	return append(line, '\n'), err
}

// settled reads until what it reads has been the same for a while.
func settled[T any](ctx context.Context, settle time.Duration, read func(context.Context) (T, error), same func(a, b T) bool) (T, error) {
	last, err := read(ctx)
	for since := time.Now(); err == nil && time.Since(since) < settle; {
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(settle / 10):
		}
		var next T
		if next, err = read(ctx); err == nil && !same(last, next) {
			last, since = next, time.Now()
		}
	}
	return last, err
}
