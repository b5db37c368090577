// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
)

func testDiscovery(t *testing.T, a *api) {
	client, err := discovery.NewDiscoveryClientForConfig(a.Config)
	if err != nil {
		t.Fatal(err)
	}
	groups, aggregated, failed, err := client.GroupsAndMaybeResources()
	if err != nil || len(failed) != 0 {
		t.Fatalf("%v, %v", err, failed)
	}
	if len(groups.Groups) != 1 || groups.Groups[0].PreferredVersion.GroupVersion != "policy.portcullis.dev/v1alpha1" {
		t.Errorf("groups %+v", groups.Groups)
	}
	if len(aggregated) == 0 {
		t.Error("discovery is not aggregated")
	}
	plain, err := client.ServerResourcesForGroupVersion("policy.portcullis.dev/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	type want struct {
		singular, shortName, kind string
		namespaced                bool
	}
	wanted := map[string]want{
		"validatingadmissionpolicies":       {"validatingadmissionpolicy", "pvap", "ValidatingAdmissionPolicy", false},
		"validatingadmissionpolicybindings": {"validatingadmissionpolicybinding", "pvapb", "ValidatingAdmissionPolicyBinding", false},
		"clusterpolicies":                   {"clusterpolicy", "pcpol", "ClusterPolicy", false},
		"policies":                          {"policy", "ppol", "Policy", true},
	}
	verbs := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	for _, resource := range plain.APIResources {
		w, ok := wanted[resource.Name]
		if !ok {
			// kubectl expands a category without a look at the verbs.
			if len(resource.Categories) != 0 && !slices.Contains(resource.Verbs, "list") {
				t.Errorf("%s cannot be listed and has categories %v", resource.Name, resource.Categories)
			}
			continue
		}
		delete(wanted, resource.Name)
		if resource.SingularName != w.singular || !slices.Equal(resource.ShortNames, []string{w.shortName}) || resource.Kind != w.kind ||
			resource.Namespaced != w.namespaced || !slices.Equal(resource.Categories, []string{"portcullis"}) || !slices.Equal(resource.Verbs, verbs) {
			t.Errorf("resource %+v, want %+v", resource, w)
		}
	}
	if len(wanted) != 0 {
		t.Errorf("not discovered: %v", wanted)
	}
}

func testTables(t *testing.T, a *api) {
	p := newPolicy("p")
	p.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	a.createPolicy(t, p)
	b := newBinding("b", "p")
	deny := admissionregistrationv1.DenyAction
	b.Spec.ParamRef = &admissionregistrationv1.ParamRef{Name: "c", Namespace: "ns", ParameterNotFoundAction: &deny}
	if _, err := a.bindings().Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path    string
		columns []string
		cells   []any // but for the age
	}{
		{policiesPath, []string{"Name", "Validations", "ParamKind", "Ready", "Age"}, []any{"p", float64(1), "v1/ConfigMap"}},
		{policiesPath + "/p", []string{"Name", "Validations", "ParamKind", "Ready", "Age"}, []any{"p", float64(1), "v1/ConfigMap"}},
		{policiesPath + "/p/status", []string{"Name", "Validations", "ParamKind", "Ready", "Age"}, []any{"p", float64(1), "v1/ConfigMap"}},
		{groupPath + "/validatingadmissionpolicybindings", []string{"Name", "PolicyName", "ParamRef", "Age"}, []any{"b", "p", "ns/c"}},
	}
	for _, test := range tests {
		got := a.do(t, request{method: "GET", path: test.path, accept: "application/json;as=Table;v=v1;g=meta.k8s.io"})
		var table metav1.Table
		got.decode(t, &table)
		var columns []string
		for _, column := range table.ColumnDefinitions {
			columns = append(columns, column.Name)
		}
		if !slices.Equal(columns, test.columns) {
			t.Errorf("%s: columns %v, want %v", test.path, columns, test.columns)
		}
		if len(table.Rows) != 1 || !slices.Equal(table.Rows[0].Cells[:3], test.cells) {
			t.Errorf("%s: rows %+v, want %v", test.path, table.Rows, test.cells)
		}
		if table.ResourceVersion == "" {
			t.Errorf("%s: table without resourceVersion", test.path)
		}
	}
}

// testMediaTypes asks as clients do that would rather have protobuf.
func testMediaTypes(t *testing.T, a *api) {
	a.createPolicy(t, newPolicy("p"))
	tests := []struct {
		accept string
		code   int
		want   string
	}{
		{"", http.StatusOK, "application/json"},
		{"application/yaml", http.StatusOK, "application/yaml"},
		{"application/vnd.kubernetes.protobuf,application/json", http.StatusOK, "application/json"},
		{"application/vnd.kubernetes.protobuf", http.StatusNotAcceptable, ""},
	}
	for _, test := range tests {
		got := a.do(t, request{method: "GET", path: policiesPath + "/p", accept: test.accept})
		if got.code != test.code || !strings.HasPrefix(got.header.Get("Content-Type"), test.want) {
			t.Errorf("Accept %q: %d %s, want %d %s", test.accept, got.code, got.header.Get("Content-Type"), test.code, test.want)
		}
	}
}

// testAccess sends every operation without credentials and with bad ones.
func testAccess(t *testing.T, a *api) {
	a.createPolicy(t, newPolicy("p"))
	stranger := a.stranger(t)
	tests := []struct {
		method, path       string
		anonymous, unknown int
	}{
		{"GET", policiesPath, 403, 401},
		{"GET", policiesPath + "?watch=true", 403, 401},
		{"GET", policiesPath + "/p", 403, 401},
		{"GET", policiesPath + "/p/status", 403, 401},
		{"POST", policiesPath, 403, 401},
		{"PUT", policiesPath + "/p", 403, 401},
		{"PATCH", policiesPath + "/p", 403, 401},
		{"DELETE", policiesPath + "/p", 403, 401},
		{"DELETE", policiesPath, 403, 401},
		{"POST", groupPath + "/admissionpreviews", 403, 401},
		{"POST", apiserver.ReviewPath, 403, 401},
		{"GET", "/apis", 403, 401},
		{"GET", "/openapi/v3", 403, 401},
		{"GET", "/metrics", 403, 401},
		{"GET", "/debug/pprof/", 403, 401},
		{"GET", "/livez", 200, 401},
		{"GET", "/readyz", 200, 401},
		{"GET", "/healthz", 200, 401},
		{"GET", "/readyz/etcd", 403, 401},
	}
	for _, test := range tests {
		if got := a.do(t, request{method: test.method, path: test.path, client: stranger}); got.code != test.anonymous {
			t.Errorf("%s %s without credentials: %d, want %d", test.method, test.path, got.code, test.anonymous)
		}
		if got := a.do(t, request{method: test.method, path: test.path, client: stranger, token: "nobody"}); got.code != test.unknown {
			t.Errorf("%s %s with an unknown token: %d, want %d", test.method, test.path, got.code, test.unknown)
		}
	}
	a.getPolicy(t, "p")
}
