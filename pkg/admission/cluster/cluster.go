// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster is what a policy may know about the cluster, and no more: a
// read-only View. Its subpackages hold the forms of the view: offline (files)
// and overlay (changes laid over another view). It does not know policies,
// requests or policy languages.
package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Selection names objects of one kind: one by name, or many by selector.
type Selection struct {
	Kind      schema.GroupVersionKind
	Namespace string // empty for cluster-scoped kinds
	Name      string
	Selector  labels.Selector // used when Name is empty; nil selects nothing
}

// View is a read-only cluster. Implementations are safe for concurrent use;
// callers must not modify what they return.
type View interface {
	// Namespace returns a Namespace, or an error that apierrors.IsNotFound
	// recognises.
	Namespace(ctx context.Context, name string) (*corev1.Namespace, error)
	// Objects returns the selected objects ordered by namespace and name. A
	// name that does not exist selects nothing and is no error.
	Objects(ctx context.Context, selection Selection) ([]*unstructured.Unstructured, error)
	// Mapper maps kinds to resources and scopes.
	Mapper() meta.RESTMapper
	// Equivalents returns the other resources that serve the same objects as
	// resource, such as other versions of a CustomResourceDefinition, in the
	// order in which they are preferred.
	Equivalents(resource schema.GroupVersionResource, subresource string) []Equivalent
	// Convert returns obj in another version of its kind. It never modifies
	// obj. Not every pair of kinds can be converted.
	Convert(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error)
	// Authorizer answers what a user may do. It never allows by default.
	Authorizer() authorizer.UnconditionalAuthorizer
}

// Equivalent is another resource that serves the same objects, with the kind in
// which it serves them.
type Equivalent struct {
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
}
