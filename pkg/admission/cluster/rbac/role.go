// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// role is a Role or a ClusterRole.
type role struct {
	name      string
	labels    labels.Set
	rules     []rbacv1.PolicyRule
	aggregate *rbacv1.AggregationRule // nil in a Role
	members   []*role                 // the ClusterRoles whose rules it has too
	fault     error                   // some of its rules are not known
}

type roles struct {
	local       map[roleKey]*role
	clusterWide map[string]*role
}

type roleKey struct{ namespace, name string }

func readRoles(ctx context.Context, source Source) (*roles, error) {
	all := &roles{local: map[roleKey]*role{}, clusterWide: map[string]*role{}}
	objects, err := list(ctx, source, "Role")
	if err != nil {
		return nil, err
	}
	for _, obj := range objects {
		found := newRole(obj)
		found.aggregate = nil
		all.local[roleKey{obj.GetNamespace(), obj.GetName()}] = found
	}
	if objects, err = list(ctx, source, "ClusterRole"); err != nil {
		return nil, err
	}
	ordered := make([]*role, 0, len(objects))
	for _, obj := range objects {
		found := newRole(obj)
		all.clusterWide[found.name] = found
		ordered = append(ordered, found)
	}
	aggregate(ordered, maxComparisons)
	return all, nil
}

func newRole(obj *unstructured.Unstructured) *role {
	var content struct {
		Rules           []rbacv1.PolicyRule     `json:"rules"`
		AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
	}
	r := &role{name: obj.GetName(), labels: obj.GetLabels()}
	if err := decode(obj, &content); err != nil {
		r.fault = err
		return r
	}
	r.rules, r.aggregate = content.Rules, content.AggregationRule
	return r
}

// decode reads the fields of obj that into has.
func decode(obj *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into); err != nil {
		return fmt.Errorf("%s cannot be read: %w; correct or remove it", describe(obj), err)
	}
	return nil
}

func describe(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return fmt.Sprintf("%s %q", obj.GetKind(), obj.GetName())
	}
	return fmt.Sprintf("%s %q", obj.GetKind(), obj.GetNamespace()+"/"+obj.GetName())
}
