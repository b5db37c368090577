// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package roles finds the roles that RBAC bindings give to a user, as Kyverno's
// pkg/userinfo does. It does not know what the roles allow, nor roles that users have in
// other ways.
package roles

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// Of returns the Roles, as namespace:name, and the ClusterRoles that bindings give to
// the user, to their groups or to their service account: sorted, and each once. Roles
// are those of all namespaces. ClusterRoles are those of ClusterRoleBindings, and of the
// RoleBindings in the namespace of the request.
func Of(ctx context.Context, view cluster.View, who user.Info, namespace string) (roles, clusterRoles []string, err error) {
	all, err := bindings(ctx, view, "RoleBinding")
	if err != nil {
		return nil, nil, err
	}
	for _, object := range all {
		b, err := read(object)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case !b.gives(who):
		case b.kind == "Role":
			roles = append(roles, b.namespace+":"+b.role)
		case b.kind == "ClusterRole" && b.namespace == namespace:
			clusterRoles = append(clusterRoles, b.role)
		}
	}
	all, err = bindings(ctx, view, "ClusterRoleBinding")
	if err != nil {
		return nil, nil, err
	}
	for _, object := range all {
		b, err := read(object)
		if err != nil {
			return nil, nil, err
		}
		if b.kind == "ClusterRole" && b.gives(who) {
			clusterRoles = append(clusterRoles, b.role)
		}
	}
	return sorted(roles), sorted(clusterRoles), nil
}

func bindings(ctx context.Context, view cluster.View, kind string) ([]*unstructured.Unstructured, error) {
	all, err := view.Objects(ctx, cluster.Selection{Kind: rbacv1.SchemeGroupVersion.WithKind(kind), Selector: labels.Everything()})
	if err != nil {
		return nil, fmt.Errorf("reading each %s for the roles of the user: %w", kind, err)
	}
	return all, nil
}

// binding is what counts of a RoleBinding or a ClusterRoleBinding.
type binding struct {
	namespace  string
	kind, role string // of roleRef
	subjects   []any
}

func read(object *unstructured.Unstructured) (binding, error) {
	b := binding{namespace: object.GetNamespace()}
	var err error
	if b.kind, _, err = unstructured.NestedString(object.Object, "roleRef", "kind"); err != nil {
		return b, fault(object, err)
	}
	if b.role, _, err = unstructured.NestedString(object.Object, "roleRef", "name"); err != nil {
		return b, fault(object, err)
	}
	subjects := object.Object["subjects"]
	if subjects == nil {
		return b, nil
	}
	var ok bool
	if b.subjects, ok = subjects.([]any); !ok {
		return b, fault(object, fmt.Errorf("subjects are a %T and no list", subjects))
	}
	for i, subject := range b.subjects {
		if _, ok := subject.(map[string]any); !ok {
			return b, fault(object, fmt.Errorf("subjects[%d] is a %T and no object", i, subject))
		}
	}
	return b, nil
}

func fault(object *unstructured.Unstructured, err error) error {
	return fmt.Errorf("%s %s/%s cannot be read for the roles of the user: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
}

// gives says whether the user is one of the subjects.
func (b *binding) gives(who user.Info) bool {
	return slices.ContainsFunc(b.subjects, func(subject any) bool {
		fields, ok := subject.(map[string]any)
		if !ok {
			return false
		}
		kind, _ := fields["kind"].(string)
		name, _ := fields["name"].(string)
		switch kind {
		case rbacv1.UserKind:
			return who.GetName() == name
		case rbacv1.GroupKind:
			return slices.Contains(who.GetGroups(), name)
		case rbacv1.ServiceAccountKind:
			namespace, _ := fields["namespace"].(string)
			if namespace == "" {
				namespace = b.namespace
			}
			return namespace != "" && serviceaccount.MatchesUsername(namespace, name, who.GetName())
		}
		return false
	})
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
