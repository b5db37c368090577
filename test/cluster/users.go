// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1apply "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
)

// AddDeveloper makes a user who, with everyone in the group, may edit what is in the
// namespace default, and nothing of Portcullis. It returns the file of the user's
// access.
func (c *Cluster) AddDeveloper(ctx context.Context, user, group string) (kubeconfig string, err error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	binding := rbacv1apply.RoleBinding(group, corev1.NamespaceDefault).
		WithRoleRef(rbacv1apply.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName("edit")).
		WithSubjects(rbacv1apply.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.GroupKind).WithName(group))
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := client.RbacV1().RoleBindings(corev1.NamespaceDefault).Apply(ctx, binding, options); err != nil {
		return "", fmt.Errorf("rights of %s: %w", group, err)
	}
	c.tell("Stored", "RoleBinding "+group+": the group may edit in the namespace "+corev1.NamespaceDefault)
	return c.Kubeconfig(user, group)
}
