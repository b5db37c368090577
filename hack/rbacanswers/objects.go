// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/hack/internal/objects"
)

// create makes the objects of a file.
func (s *server) create(ctx context.Context, file string) error {
	found, err := objects.Read(file)
	if err != nil {
		return err
	}
	store, err := objects.Open(s.config)
	if err != nil {
		return err
	}
	for _, object := range found {
		if err := store.Create(ctx, object); err != nil {
			return fmt.Errorf("%s: %s %s/%s: %w", file, object.GetKind(), object.GetNamespace(), object.GetName(), err)
		}
	}
	return nil
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
