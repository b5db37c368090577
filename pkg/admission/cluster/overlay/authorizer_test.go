// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

const rbacObjects = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: readers}, roleRef: {kind: Role, name: reader}, subjects: [{kind: User, name: u}]}
`

// silent cannot tell what users may do.
type silent struct{ cluster.View }

func (silent) Authorizer() authorizer.UnconditionalAuthorizer { return nil }

func mayGetPods(t *testing.T, view cluster.View, name string) bool {
	t.Helper()
	decision, _, err := view.Authorizer().Authorize(t.Context(), authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: name}, Verb: "get", Resource: "pods", Namespace: "default", ResourceRequest: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return decision == authorizer.DecisionAllow
}

func TestAuthorizer(t *testing.T) {
	base := newBase(t, rbacObjects)
	tests := []struct {
		name, over string
		u, v       bool
	}{
		{name: "nothing of RBAC", over: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", u: true},
		{name: "another binding", u: true, v: true, over: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: more}, roleRef: {kind: Role, name: reader}, subjects: [{kind: User, name: v}]}`},
		{name: "the binding replaced", v: true, over: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: readers}, roleRef: {kind: Role, name: reader}, subjects: [{kind: User, name: v}]}`},
		{name: "the binding in another namespace", u: true, over: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: readers, namespace: x}, roleRef: {kind: Role, name: reader}, subjects: [{kind: User, name: v}]}`},
		{name: "the role replaced", over: `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader}, rules: []}`},
		{name: "all of the cluster", u: true, v: true, over: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {kind: ClusterRole, name: cluster-admin}, subjects: [{kind: User, name: v}]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			view := newOver(t, base, test.over)
			if got := mayGetPods(t, view, "u"); got != test.u {
				t.Errorf("u: got %t, want %t", got, test.u)
			}
			if got := mayGetPods(t, view, "v"); got != test.v {
				t.Errorf("v: got %t, want %t", got, test.v)
			}
			if !mayGetPods(t, base, "u") || mayGetPods(t, base, "v") {
				t.Error("the base has changed")
			}
		})
	}
	if newOver(t, base, tests[0].over).Authorizer() != base.Authorizer() {
		t.Error("got another authorizer than that of the base, without RBAC objects")
	}
}

func TestAuthorizerIsUnknown(t *testing.T) {
	for _, over := range []string{rbacObjects, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"} {
		if got := newOver(t, silent{newBase(t, "")}, over).Authorizer(); got != nil {
			t.Errorf("got %v over a base that cannot tell, want none", got)
		}
	}
}
