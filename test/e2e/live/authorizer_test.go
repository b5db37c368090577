// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAuthorizer: expressions ask what users may do at the time, whoever they are.
func TestAuthorizer(t *testing.T) {
	const namespace = "authz"
	newNamespace(t, namespace, nil)
	writer := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}
	grant(t, namespace, "writers", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "writers"}, writer)
	alice, bob := user(t, "alice", "writers"), user(t, "bob", "writers", "keepers")
	questions := map[string]string{
		"resource":       "authorizer.group('').resource('secrets').namespace('" + namespace + "').check('get').allowed()",
		"named":          "authorizer.group('').resource('secrets').namespace('" + namespace + "').name('key').check('get').allowed()",
		"request":        "authorizer.requestResource.check('approve').allowed()",
		"path":           "authorizer.path('/authz').check('get').allowed()",
		"serviceaccount": "authorizer.serviceAccount('" + namespace + "', 'robot').group('').resource('secrets').namespace('" + namespace + "').check('get').allowed()",
	}
	for name, expression := range questions {
		enforce(t, "authz."+name+".example.com", `{matchConstraints: `+onJudged+`, matchConditions: [{name: asked, expression: "object.metadata.name == '`+name+`'"}],
		  validations: [{expression: "`+expression+`", message: no right}]}`, `{}`)
	}
	expect := func(when string, p *person, name, text string) {
		t.Helper()
		if text != "" {
			text = denial("authz."+name+".example.com", text)
		}
		eventually(t, name+" "+when, func(ctx context.Context) error { return want(try(ctx, p, namespace, name), text) })
	}
	for name := range questions {
		expect("without any right", alice, name, "no right")
	}
	for _, name := range []string{"resource", "named", "request", "path"} {
		expect("of the administrator", admin, name, "")
	}

	const core = ""
	secrets := rbacv1.PolicyRule{APIGroups: []string{core}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
	key := rbacv1.PolicyRule{APIGroups: []string{core}, Resources: []string{"secrets"}, ResourceNames: []string{"key"}, Verbs: []string{"get"}}
	approve := rbacv1.PolicyRule{APIGroups: []string{core}, Resources: []string{"configmaps"}, Verbs: []string{"approve"}}
	revoke := grant(t, namespace, "keepers", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "keepers"}, secrets)
	grant(t, namespace, "alice", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "alice"}, key, approve)
	grant(t, namespace, "robot", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "robot"}, secrets)
	for _, name := range []string{"named", "request", "serviceaccount"} {
		expect("with the right", alice, name, "")
	}
	for _, name := range []string{"resource", "named"} {
		expect("with the right of a group", bob, name, "")
	}
	expect("without the right", bob, "request", "no right")
	expect("with a right to one", alice, "resource", "no right")
	revoke()
	for _, name := range []string{"resource", "named"} {
		expect("when the right is gone", bob, name, "no right")
	}
	expect("with a right of her own", alice, "named", "")
}

// grant gives a subject rights in a namespace, or everywhere, until the test ends or
// what it returns is called.
func grant(t *testing.T, namespace, name string, to rbacv1.Subject, rules ...rbacv1.PolicyRule) (revoke func()) {
	t.Helper()
	if to.Kind != rbacv1.ServiceAccountKind {
		to.APIGroup = rbacv1.GroupName
	}
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	rbac, ctx := admin.kube.RbacV1(), context.WithoutCancel(t.Context())
	var errs [2]error
	remove := func() (errs [2]error) {
		errs[0] = rbac.RoleBindings(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		errs[1] = rbac.Roles(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		return errs
	}
	if namespace != "" {
		_, errs[0] = rbac.Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		_, errs[1] = rbac.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{to}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		}, metav1.CreateOptions{})
	} else {
		_, errs[0] = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		_, errs[1] = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{to}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		}, metav1.CreateOptions{})
		remove = func() (errs [2]error) {
			errs[0] = rbac.ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
			errs[1] = rbac.ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{})
			return errs
		}
	}
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	revoke = func() {
		for _, err := range remove() {
			ignoreAbsence(t, err)
		}
	}
	t.Cleanup(revoke)
	return revoke
}
