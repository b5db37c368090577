// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/convert"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/workload"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/rbac"
)

// bare is a cluster that has nothing but the RBAC objects that kube-apiserver
// makes itself.
type bare struct{ evaluator *rbac.Evaluator }

var _ cluster.View = (*bare)(nil)

func newBare() *bare {
	b := &bare{}
	b.evaluator = rbac.New(b)
	return b
}

func (*bare) Namespace(_ context.Context, name string) (*corev1.Namespace, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
}

func (*bare) Objects(_ context.Context, selection cluster.Selection) ([]*unstructured.Unstructured, error) {
	if _, err := selection.Mapping(builtin.Table()); err != nil {
		return nil, err
	}
	if selection.Kind.Group != rbacv1.GroupName {
		return nil, nil
	}
	all, err := builtin.RBAC()
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, obj := range all { // in order
		if obj.GroupVersionKind() == selection.Kind && selects(selection, obj) {
			found = append(found, obj)
		}
	}
	return found, nil
}

func (b *bare) Walk(ctx context.Context, selection cluster.Selection, visit cluster.Visit) error {
	found, err := b.Objects(ctx, selection)
	if err != nil {
		return err
	}
	return cluster.WalkHeld(found, visit)
}

// selects says whether an object of the kind of s is one that s names.
func selects(s cluster.Selection, obj *unstructured.Unstructured) bool {
	if s.Name != "" {
		return s.Name == obj.GetName() && s.Namespace == obj.GetNamespace()
	}
	return s.Selector != nil && (s.Namespace == "" || s.Namespace == obj.GetNamespace()) &&
		s.Selector.Matches(labels.Set(obj.GetLabels()))
}

func (*bare) Mapper() meta.RESTMapper { return builtin.Table() }

func (*bare) Equivalents(resource schema.GroupVersionResource, subresource string) []cluster.Equivalent {
	return builtin.Table().Equivalents(resource, subresource)
}

// Convert converts the built-in kinds that have several versions.
func (*bare) Convert(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	from := obj.GroupVersionKind()
	if from == to {
		return obj, nil
	}
	if converted, known, err := convert.To(obj, to); known {
		return converted, err
	}
	return nil, fmt.Errorf("unable to convert %v to %v: the object that the API server converted is needed", from, to)
}

// Stored sets the defaults of the kinds that run pods, and converts like Convert.
func (b *bare) Stored(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	return b.Convert(workload.Default(obj), to)
}

func (*bare) Schema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	return builtin.Schema(kind)
}

func (b *bare) Authorizer() authorizer.UnconditionalAuthorizer { return b.evaluator }
