// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
)

func newView(t testing.TB, text string) *offline.View {
	t.Helper()
	objects, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	view, err := offline.New(objects)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// ask returns the reason of an answer, "no" when nobody allows, and fails on an
// error.
func ask(t *testing.T, view cluster.View, attributes authorizer.AttributesRecord) string {
	t.Helper()
	decision, reason, err := view.Authorizer().Authorize(t.Context(), attributes)
	if err != nil {
		t.Fatal(err)
	}
	if decision != authorizer.DecisionAllow {
		return "no"
	}
	return reason
}

func path(path string, groups ...string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "u", Groups: groups}, Verb: "get", Path: path}
}

func resource(verb, group, resource, namespace string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "u"}, Verb: verb, APIGroup: group, Resource: resource, Namespace: namespace, ResourceRequest: true,
	}
}

const bindView = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: u-views, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: u}]
`

func TestAuthorizer(t *testing.T) {
	const discovery = `RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated"`
	const views = `RBAC: allowed by RoleBinding "u-views/team" of ClusterRole "view" to User "u"`
	tests := []struct {
		name    string
		objects string
		asked   authorizer.AttributesRecord
		want    string
	}{
		{name: "what everybody may", asked: path("/apis/apps", "system:authenticated"), want: discovery},
		{name: "what nobody may", asked: path("/metrics", "system:authenticated"), want: "no"},
		{name: "the masters", asked: path("/metrics", "system:masters"), want: ""},
		{
			name:    "a binding that takes the place of one of the cluster",
			objects: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: system:discovery}\nroleRef: {kind: ClusterRole, name: system:discovery}\n",
			asked:   path("/apis/apps", "system:authenticated"), want: "no",
		},
		{name: "a role of the cluster", objects: bindView, asked: resource("get", "", "pods", "team"), want: views},
		{name: "elsewhere", objects: bindView, asked: resource("get", "", "pods", "default"), want: "no"},
		{name: "not in the role", objects: bindView, asked: resource("get", "", "secrets", "team"), want: "no"},
		{
			name: "a role that joins one of the cluster",
			objects: bindView + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: g, labels: {rbac.authorization.k8s.io/aggregate-to-view: 'true'}}\n" +
				"rules: [{apiGroups: [a.example], resources: [gadgets], verbs: [get]}]\n",
			asked: resource("get", "a.example", "gadgets", "team"), want: views,
		},
		{
			name:    "a role that takes the place of one of the cluster",
			objects: bindView + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: view}\nrules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]\n",
			asked:   resource("get", "", "secrets", "team"), want: views,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := ask(t, newView(t, test.objects), test.asked); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestAuthorizerIsShared holds that views without RBAC objects share the compiled
// ones of the empty cluster.
func TestAuthorizerIsShared(t *testing.T) {
	empty := newView(t, "").Authorizer()
	if newView(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}").Authorizer() != empty {
		t.Error("got an authorizer of its own for a view without RBAC objects")
	}
	view := newView(t, bindView)
	if view.Authorizer() == empty || view.Authorizer() != view.Authorizer() {
		t.Error("want one authorizer for a view with RBAC objects")
	}
}

func TestRBACObjects(t *testing.T) {
	view := newView(t, bindView)
	tests := []struct {
		name      string
		selection cluster.Selection
		want      []string
	}{
		{name: "by name", selection: cluster.Selection{Kind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Name: "cluster-admin"}, want: []string{"/cluster-admin"}},
		{name: "another kind", selection: cluster.Selection{Kind: rbacv1.SchemeGroupVersion.WithKind("Role"), Namespace: "default", Name: "cluster-admin"}},
		{name: "another namespace", selection: cluster.Selection{Kind: rbacv1.SchemeGroupVersion.WithKind("Role"), Namespace: "default", Name: "system:controller:token-cleaner"}},
		{
			name:      "by label",
			selection: cluster.Selection{Kind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Selector: labels.SelectorFromSet(labels.Set{"rbac.authorization.k8s.io/aggregate-to-view": "true"})},
			want:      []string{"/system:aggregate-to-view"},
		},
		{
			name:      "of a namespace",
			selection: cluster.Selection{Kind: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), Namespace: "kube-public", Selector: labels.Everything()},
			want:      []string{"kube-public/system:controller:bootstrap-signer"},
		},
		{
			name:      "together",
			selection: cluster.Selection{Kind: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), Selector: labels.Everything()},
			want: []string{
				"kube-public/system:controller:bootstrap-signer", "kube-system/system::extension-apiserver-authentication-reader",
				"kube-system/system::leader-locking-kube-controller-manager", "kube-system/system::leader-locking-kube-scheduler",
				"kube-system/system:controller:bootstrap-signer", "kube-system/system:controller:cloud-provider",
				"kube-system/system:controller:token-cleaner", "team/u-views",
			},
		},
		{name: "nothing", selection: cluster.Selection{Kind: rbacv1.SchemeGroupVersion.WithKind("RoleBinding")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, err := view.Objects(t.Context(), test.selection)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, obj := range objects {
				got = append(got, obj.GetNamespace()+"/"+obj.GetName())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// BenchmarkAuthorizer is the cost of the first question to a view with RBAC
// objects of its own.
func BenchmarkAuthorizer(b *testing.B) {
	objects, err := manifest.Decode([]byte(bindView))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		view, err := offline.New(slices.Clone(objects))
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := view.Authorizer().Authorize(b.Context(), resource("get", "", "pods", "team")); err != nil {
			b.Fatal(err)
		}
	}
}
