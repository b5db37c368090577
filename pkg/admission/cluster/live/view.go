// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/convert"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/workload"
)

// view is the cluster with the kinds of one snapshot.
type view struct {
	cluster  *Cluster
	snapshot *snapshot
	mapper   *mapper
}

var _ cluster.View = (*view)(nil)

func everything() labels.Selector { return labels.Everything() }

func (v *view) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	return v.cluster.namespaces.get(ctx, name)
}

func (v *view) Objects(ctx context.Context, wanted cluster.Selection) ([]*unstructured.Unstructured, error) {
	mapping, err := wanted.Mapping(v.mapper)
	if err != nil {
		return nil, err
	}
	if wanted.Name == "" && wanted.Selector == nil {
		return nil, nil
	}
	c := v.cluster
	at := where{wanted.Kind, mapping.Resource}
	followed := c.kinds.find(wanted.Kind)
	if followed != nil {
		held, err := followed.held(ctx, mapping.Resource)
		if err != nil {
			return nil, err
		}
		if wanted.Name == "" {
			return held.List(wanted.Namespace, wanted.Selector), nil
		}
		if found, ok := held.Get(wanted.Namespace, wanted.Name); ok {
			return []*unstructured.Unstructured{found}, nil
		}
		// It may be so new that the API server has not told of it yet.
	}
	if wanted.Name != "" {
		return c.reader.named(ctx, at, wanted.Namespace, wanted.Name)
	}
	return c.reader.selected(ctx, at, selection{wanted.Namespace, wanted.Selector})
}

func (v *view) Mapper() meta.RESTMapper { return v.mapper }

// Equivalents asks anew about a resource that is not known yet: kube-apiserver serves one
// as soon as it is defined.
func (v *view) Equivalents(resource schema.GroupVersionResource, subresource string) []cluster.Equivalent {
	if !v.snapshot.read {
		return builtin.Table().Equivalents(resource, subresource)
	}
	return v.mapper.knowing(resource.GroupResource()).table.Equivalents(resource, subresource)
}

// Convert converts the built-in kinds that have several versions, and custom resources
// unless a webhook does that.
func (v *view) Convert(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	from := obj.GroupVersionKind()
	if from == to {
		return obj, nil
	}
	if err := v.cluster.survey.unread(); err != nil {
		return nil, err
	}
	if defined := v.definitionOf(from.GroupKind()); defined != nil {
		return defined.definition.Convert(obj, to)
	}
	if converted, known, err := convert.To(obj, to); known {
		return converted, err
	}
	return nil, fmt.Errorf("unable to convert %v to %v: the object that the API server converted is needed", from, to)
}

// definitionOf returns the CustomResourceDefinition of a kind, which the view may have
// got to know since, or nil.
func (v *view) definitionOf(kind schema.GroupKind) *defined {
	if known := v.snapshot.definitions[kind]; known != nil {
		return known
	}
	return v.cluster.survey.latest.Load().definitions[kind]
}

// Stored is for objects that are laid over the view: those of the API server are
// stored.
func (v *view) Stored(obj *unstructured.Unstructured, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	if defined := v.definitionOf(obj.GroupVersionKind().GroupKind()); defined != nil {
		whole, err := v.cluster.wholes.of(defined)
		if err != nil {
			return nil, err
		}
		return whole.Stored(obj, to)
	}
	return v.Convert(workload.Default(obj), to)
}

func (v *view) Schema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	_, now, err := v.mapper.mapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%v: %w", kind, resolver.ErrSchemaNotFound)
	}
	if err != nil {
		return nil, err
	}
	return v.cluster.schemas.of(kind, now)
}

func (v *view) Authorizer() authorizer.UnconditionalAuthorizer { return v.cluster.authorizer }
