// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"cmp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
)

func TestRBAC(t *testing.T) {
	objects, err := builtin.RBAC()
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, obj := range objects {
		mapping, err := builtin.Table().RESTMapping(obj.GroupVersionKind().GroupKind(), obj.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		if got := obj.GetNamespace() != ""; got != (mapping.Scope.Name() == meta.RESTScopeNameNamespace) {
			t.Errorf("%s %s: got namespaced %t", obj.GetKind(), obj.GetName(), got)
		}
		exists[obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName()] = true
		metadata, _, err := unstructured.NestedMap(obj.Object, "metadata")
		if err != nil {
			t.Fatal(err)
		}
		for name := range metadata {
			if !slices.Contains([]string{"name", "namespace", "labels", "annotations"}, name) {
				t.Errorf("%s %s has metadata.%s, which differs between clusters", obj.GetKind(), obj.GetName(), name)
			}
		}
	}
	if len(exists) != len(objects) {
		t.Errorf("got %d objects of %d names", len(objects), len(exists))
	}
	for _, want := range []string{
		"ClusterRole /cluster-admin", "ClusterRole /admin", "ClusterRole /edit", "ClusterRole /view", "ClusterRoleBinding /cluster-admin",
		"ClusterRoleBinding /system:discovery", "ClusterRoleBinding /system:basic-user", "ClusterRoleBinding /system:public-info-viewer",
		"ClusterRoleBinding /system:controller:deployment-controller", "Role kube-system/extension-apiserver-authentication-reader",
		"RoleBinding kube-public/system:controller:bootstrap-signer",
	} {
		if !exists[want] {
			t.Errorf("%s is missing", want)
		}
	}
	for _, obj := range objects {
		kind, _, _ := unstructured.NestedString(obj.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(obj.Object, "roleRef", "name")
		namespace := ""
		if kind == "Role" {
			namespace = obj.GetNamespace()
		}
		if kind != "" && !exists[kind+" "+namespace+"/"+name] {
			t.Errorf("%s %s refers to %s %s, which does not exist", obj.GetKind(), obj.GetName(), kind, name)
		}
	}
	ordered := slices.IsSortedFunc(objects, func(a, b *unstructured.Unstructured) int {
		if a.GetKind() != b.GetKind() {
			return 0
		}
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	if !ordered {
		t.Error("the objects of a kind are not in the order of View.Objects")
	}
}
