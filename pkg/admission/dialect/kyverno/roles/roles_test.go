// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package roles_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/roles"
)

// world is a cluster of bindings.
type world struct {
	cluster.View // panics on what must not be asked
	bindings     []*unstructured.Unstructured
	broken       string // the kind that cannot be read
}

func (w *world) Objects(_ context.Context, selection cluster.Selection) ([]*unstructured.Unstructured, error) {
	if selection.Kind.GroupVersion() != rbacv1.SchemeGroupVersion || selection.Namespace != "" || selection.Name != "" ||
		selection.Selector == nil || !selection.Selector.Matches(labels.Set{}) {
		return nil, fmt.Errorf("asked for %v", selection)
	}
	if selection.Kind.Kind == w.broken {
		return nil, errors.New("the store does not answer")
	}
	var found []*unstructured.Unstructured
	for _, binding := range w.bindings {
		if binding.GetKind() == selection.Kind.Kind {
			found = append(found, binding)
		}
	}
	return found, nil
}

// bind returns a binding of the role to the subjects, in no namespace a
// ClusterRoleBinding. Subjects are kind=name, or kind=namespace=name.
func bind(namespace, roleKind, role string, subjects ...string) *unstructured.Unstructured {
	kind, metadata := "ClusterRoleBinding", map[string]any{"name": "b"}
	if namespace != "" {
		kind, metadata = "RoleBinding", map[string]any{"name": "b", "namespace": namespace}
	}
	var all []any
	for _, subject := range subjects {
		parts := strings.Split(subject, "=")
		fields := map[string]any{"kind": parts[0], "name": parts[len(parts)-1]}
		if len(parts) == 3 {
			fields["namespace"] = parts[1]
		}
		all = append(all, fields)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
		"roleRef": map[string]any{"kind": roleKind, "name": role}, "subjects": all,
	}}
}

func TestOf(t *testing.T) {
	all := []*unstructured.Unstructured{
		bind("shop", "Role", "z-role", "User=alice"),
		bind("shop", "Role", "role", "User=bob", "Group=dev"),
		bind("lab", "Role", "role", "ServiceAccount=ci=builder"),
		bind("lab", "Role", "implicit", "ServiceAccount=builder"),
		bind("shop", "ClusterRole", "edit", "Group=dev"),
		bind("lab", "ClusterRole", "view", "Group=dev"),
		bind("", "ClusterRole", "edit", "User=alice", "Group=dev"),
		bind("", "ClusterRole", "reader", "ServiceAccount=ci=builder", "ServiceAccount=builder"),
		bind("", "Role", "no such thing", "User=alice"),
		bind("shop", "Other", "no such thing", "User=alice"),
		bind("shop", "Role", "nobody"),
		bind("shop", "Role", "unknown subject", "Robot=alice"),
	}
	alice := &user.DefaultInfo{Name: "alice", Groups: []string{"dev", "system:authenticated"}}
	for name, test := range map[string]struct {
		who                 user.Info
		namespace           string
		roles, clusterRoles []string
	}{
		"user and groups":                          {alice, "shop", []string{"shop:role", "shop:z-role"}, []string{"edit"}},
		"cluster roles of the request's namespace": {alice, "lab", []string{"shop:role", "shop:z-role"}, []string{"edit", "view"}},
		"in no namespace":                          {alice, "", []string{"shop:role", "shop:z-role"}, []string{"edit"}},
		"a service account":                        {&user.DefaultInfo{Name: "system:serviceaccount:ci:builder"}, "shop", []string{"lab:role"}, []string{"reader"}},
		"one in the namespace of the binding":      {&user.DefaultInfo{Name: "system:serviceaccount:lab:builder"}, "shop", []string{"lab:implicit"}, nil},
		"no service account without a namespace":   {&user.DefaultInfo{Name: "system:serviceaccount::builder"}, "shop", nil, nil},
		"names are exact":                          {&user.DefaultInfo{Name: "Alice", Groups: []string{"de"}}, "shop", nil, nil},
		"nobody":                                   {&user.DefaultInfo{}, "shop", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, gotCluster, err := roles.Of(t.Context(), &world{bindings: all}, test.who, test.namespace)
			if err != nil || !slices.Equal(got, test.roles) || !slices.Equal(gotCluster, test.clusterRoles) {
				t.Errorf("got %q, %q, error %v; want %q, %q", got, gotCluster, err, test.roles, test.clusterRoles)
			}
		})
	}
}

func TestOfFails(t *testing.T) {
	noList := bind("shop", "Role", "r", "User=alice")
	noList.Object["subjects"] = "alice"
	noSubject := bind("shop", "Role", "r", "User=alice")
	noSubject.Object["subjects"] = []any{"alice"}
	noName := bind("", "ClusterRole", "r", "User=alice")
	noName.Object["roleRef"] = map[string]any{"kind": "ClusterRole", "name": int64(1)}
	for name, test := range map[string]struct {
		world world
		want  string
	}{
		"role bindings cannot be read":         {world{broken: "RoleBinding"}, "reading each RoleBinding for the roles of the user: the store does not answer"},
		"cluster role bindings cannot be read": {world{broken: "ClusterRoleBinding"}, "reading each ClusterRoleBinding for the roles of the user: the store does not answer"},
		"subjects of another type":             {world{bindings: []*unstructured.Unstructured{noList}}, "RoleBinding shop/b cannot be read"},
		"a subject of another type":            {world{bindings: []*unstructured.Unstructured{noSubject}}, "subjects[0] is a string and no object"},
		"a role of another type":               {world{bindings: []*unstructured.Unstructured{noName}}, "ClusterRoleBinding /b cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := roles.Of(t.Context(), &test.world, &user.DefaultInfo{Name: "alice"}, "shop")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}
