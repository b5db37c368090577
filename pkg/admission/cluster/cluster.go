// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster is what a policy may know about the cluster, and no more: a
// read-only View. Its subpackages hold the forms of the view: live (an API
// server), offline (files) and overlay (changes laid over another view). It does not
// know policies, requests or policy languages.
package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Lists says whether an API server lists the objects of a kind. What is sent to the
// others, such as a TokenReview, it answers and forgets.
func Lists(kind schema.GroupKind) bool {
	switch kind.Group {
	case "":
		return kind.Kind != "Binding"
	case "authentication.k8s.io", "authorization.k8s.io":
		return false
	}
	return true
}

// Selection names objects of one kind: one by name, or many by selector.
type Selection struct {
	// Kind is the kind in which the objects are returned. Its version is
	// needed.
	Kind schema.GroupVersionKind
	// Namespace is empty for cluster-scoped kinds. For namespaced kinds it is
	// needed with Name; with Selector, empty means all namespaces.
	Namespace string
	Name      string
	Selector  labels.Selector // used when Name is empty; nil selects nothing
}

// Mapping returns how mapper maps the kind of s. It is an error when the kind
// is unknown (a meta.NoKindMatchError), or when the namespace does not fit its
// scope: such a selection must not look as if there were no objects.
func (s Selection) Mapping(mapper meta.RESTMapper) (*meta.RESTMapping, error) {
	if s.Kind.Version == "" {
		return nil, &meta.NoKindMatchError{GroupKind: s.Kind.GroupKind()}
	}
	mapping, err := mapper.RESTMapping(s.Kind.GroupKind(), s.Kind.Version)
	if err != nil {
		return nil, err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	switch {
	case namespaced && s.Namespace == "" && s.Name != "":
		return nil, fmt.Errorf("selecting %s %q needs a namespace", s.Kind.Kind, s.Name)
	case !namespaced && s.Namespace != "":
		return nil, fmt.Errorf("selecting %s in namespace %q: the kind is cluster-scoped", s.Kind.Kind, s.Namespace)
	}
	return mapping, nil
}

// View is a read-only cluster. Implementations are safe for concurrent use;
// callers must not modify what they return.
type View interface {
	// Namespace returns a Namespace, or an error that apierrors.IsNotFound
	// recognises.
	Namespace(ctx context.Context, name string) (*corev1.Namespace, error)
	// Objects returns the selected objects, in the asked version of their kind,
	// ordered by namespace and name. A name that does not exist selects nothing
	// and is no error. The errors of Selection.Mapping are those of Objects, and
	// an object that cannot be converted to the asked version is an error too.
	Objects(ctx context.Context, selection Selection) ([]*unstructured.Unstructured, error)
	// Walk visits the objects that Objects would return, one after the other, and holds
	// a small part of them at a time: it is for looking at what may be large. It ends
	// when visit says so, and with the error of visit. The order is the same each time:
	// that of ComparePaths, which is that of kube-apiserver; what another API server
	// lists comes in its order. Of objects that change meanwhile it may show one state
	// or the other. An error may come when a part has been visited, and so may the end
	// of ctx.
	Walk(ctx context.Context, selection Selection, visit Visit) error
	// Mapper maps kinds to resources and scopes. For a kind that is not served
	// it returns a meta.NoKindMatchError. It is comparable: views with the same one
	// have the same schemas. A mapper that serves one view only has a method
	// Types() any, which returns what is to be compared instead.
	Mapper() meta.RESTMapper
	// Equivalents returns the other resources that serve the same objects as
	// resource, such as other versions of a CustomResourceDefinition, in the
	// order in which kube-apiserver tries them. The versions of a
	// CustomResourceDefinition count even when they are not served. Kind is that
	// of the subresource.
	Equivalents(resource schema.GroupVersionResource, subresource string) []Equivalent
	// Convert returns obj in another version of its kind, and obj itself when it
	// has that version. It never modifies obj; what it returns may share values
	// with obj. Not every pair of kinds can be converted.
	Convert(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error)
	// Stored returns obj as an API server that has stored it returns it in a
	// version of its kind: defaulted, and without what its
	// CustomResourceDefinition does not know. Objects returns objects so. It is
	// not for objects of requests, which the API server has completed as far as
	// policies may see it. It never modifies obj; what it returns may be obj, or
	// share values with it.
	Stored(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error)
	// Schema returns the schema of a kind that is served, with the schemas to
	// which it refers in the place of the references. Where a kind is part of
	// itself, the inner one is an object without fields. When there is none, the
	// error is one that wraps resolver.ErrSchemaNotFound of
	// k8s.io/apiserver/pkg/cel/openapi/resolver, and the method has the contract of
	// SchemaResolver.ResolveSchema there.
	Schema(kind schema.GroupVersionKind) (*spec.Schema, error)
	// Authorizer answers what a user may do. It is nil where the view cannot
	// tell: a policy that asks is then an error, for neither yes nor no is safe. It
	// is one, too, where the authorizer returns an UnansweredError.
	Authorizer() authorizer.UnconditionalAuthorizer
}

// Equivalent is another resource that serves the same objects, with the kind in
// which it serves them.
type Equivalent struct {
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
}
