// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
)

// bare is a cluster without any object.
type bare struct{}

var _ cluster.View = bare{}

func (bare) Namespace(_ context.Context, name string) (*corev1.Namespace, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
}

func (bare) Objects(_ context.Context, selection cluster.Selection) ([]*unstructured.Unstructured, error) {
	_, err := selection.Mapping(builtin.Table())
	return nil, err
}

func (bare) Mapper() meta.RESTMapper { return builtin.Table() }

func (bare) Equivalents(resource schema.GroupVersionResource, subresource string) []cluster.Equivalent {
	return builtin.Table().Equivalents(resource, subresource)
}

// Convert converts nothing: the versions of built-in kinds differ, and only
// k8s.io/kubernetes, which cannot be imported, knows how.
func (bare) Convert(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	from := obj.GroupVersionKind()
	if from == to {
		return obj, nil
	}
	return nil, fmt.Errorf("unable to convert %v to %v: the object that the API server converted is needed", from, to)
}

// Authorizer returns nil: RBAC objects are not judged yet.
func (bare) Authorizer() authorizer.UnconditionalAuthorizer { return nil }
