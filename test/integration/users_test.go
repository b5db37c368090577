// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// roles let the group devs preview, the user author write policies, and the user
// gate post reviews.
const roles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: preview}
rules:
- {apiGroups: [policy.portcullis.dev], resources: [admissionpreviews], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: preview}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: preview}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: devs}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: author}
rules:
- {apiGroups: [policy.portcullis.dev], resources: [validatingadmissionpolicies], verbs: [create, get, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: author}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: author}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: author}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: review}
rules:
- {nonResourceURLs: [/admission/v1/validate], verbs: [post]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: review}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: review}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: gate}
`

// writeFile writes a file that only this user may read.
func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// holder returns a client that shows a certificate, also to a server that does
// not know who signed it.
func (a *api) holder(t *testing.T, certificate *tls.Certificate) *http.Client {
	t.Helper()
	config, err := rest.TLSConfigFor(a.Anonymous())
	if err != nil {
		t.Fatal(err)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestUsers(t *testing.T) {
	objects, files := t.TempDir(), t.TempDir()
	writeFile(t, objects, "roles.yaml", roles)
	authority := harness.NewAuthority(t, "users")
	bundle := writeFile(t, files, "users.pem", string(authority.PEM()))
	tokens := writeFile(t, files, "tokens.csv", "jane-token,jane,1,\"devs,ops\"\njoe-token,joe,2\nroot-token,root,3,system:masters\n")
	a := newAPI(t, harness.WithObjects(objects), harness.WithUsers(bundle, tokens))

	anonymous := a.stranger(t)
	type caller struct {
		name, token string
		client      *http.Client
	}
	jane := caller{name: "jane", token: "jane-token", client: anonymous}
	joe := caller{name: "joe", token: "joe-token", client: anonymous}
	author := caller{name: "author", client: a.holder(t, authority.Issue(t, "author"))}
	gate := caller{name: "gate", client: a.holder(t, authority.Issue(t, "gate", "webhooks"))}
	dev := caller{name: "dev", client: a.holder(t, authority.Issue(t, "dev", "devs"))}

	const (
		ok, created, unauthorized, forbidden = http.StatusOK, http.StatusCreated, http.StatusUnauthorized, http.StatusForbidden
		previewsPath                         = groupPath + "/admissionpreviews"
	)
	preview := encode(t, &v1alpha1.AdmissionPreview{Spec: v1alpha1.AdmissionPreviewSpec{Request: &v1alpha1.PreviewRequest{Object: raw(deployment)}}})
	tests := []struct {
		caller       caller
		method, path string
		body         []byte
		code         int
		message      string
	}{
		{jane, "POST", previewsPath, preview, created, ""},
		{dev, "POST", previewsPath, preview, created, ""},
		{joe, "POST", previewsPath, preview, forbidden, `admissionpreviews.policy.portcullis.dev is forbidden: User \"joe\" cannot create resource \"admissionpreviews\" in API group \"policy.portcullis.dev\" at the cluster scope`},
		{author, "POST", previewsPath, preview, forbidden, `User \"author\" cannot create`},
		{jane, "GET", policiesPath, nil, forbidden, `validatingadmissionpolicies.policy.portcullis.dev is forbidden: User \"jane\" cannot list resource`},
		{jane, "POST", policiesPath, encode(t, newPolicy("q")), forbidden, `User \"jane\" cannot create`},
		{author, "POST", policiesPath, encode(t, newPolicy("p")), created, ""},
		{author, "GET", policiesPath + "/p", nil, ok, ""},
		{author, "GET", policiesPath, nil, forbidden, `User \"author\" cannot list`},
		{author, "DELETE", policiesPath + "/p", nil, ok, ""},
		{gate, "POST", apiserver.ReviewPath, demoReview(t), ok, `"allowed":true`},
		{gate, "GET", policiesPath + "/p", nil, forbidden, `User \"gate\" cannot get`},
		{author, "POST", apiserver.ReviewPath, demoReview(t), forbidden, `forbidden: User \"author\" cannot post path \"/admission/v1/validate\"`},
		{joe, "GET", "/apis", nil, ok, "policy.portcullis.dev"},
		{gate, "GET", groupPath, nil, ok, "validatingadmissionpolicies"},
		{joe, "GET", "/metrics", nil, forbidden, `User \"joe\" cannot get path`},
		{caller{token: "root-token", client: anonymous}, "GET", "/metrics", nil, ok, ""},
		{caller{client: a.holder(t, authority.Issue(t, "root", "system:masters"))}, "GET", "/metrics", nil, ok, ""},
		{caller{name: "administrator"}, "GET", "/metrics", nil, ok, ""},
		{caller{token: "jane-tokens", client: anonymous}, "GET", "/readyz", nil, unauthorized, "Unauthorized"},
		{caller{client: a.holder(t, harness.NewAuthority(t, "users").Issue(t, "author"))}, "GET", "/readyz", nil, unauthorized, "Unauthorized"},
		{caller{client: anonymous}, "GET", policiesPath, nil, forbidden, `User \"system:anonymous\" cannot list`},
		{caller{client: anonymous}, "GET", "/readyz", nil, ok, ""},
	}
	for _, test := range tests {
		answer := a.do(t, request{method: test.method, path: test.path, body: test.body, token: test.caller.token, client: test.caller.client})
		if answer.code != test.code || !strings.Contains(string(answer.body), test.message) {
			t.Errorf("%s %s by %q: got %d and\n%s\nwant %d and\n%s", test.method, test.path, test.caller.name, answer.code, answer.body, test.code, test.message)
		}
	}
	testAuthorityChanges(t, a, bundle)
}

// testAuthorityChanges: a bundle that changes is read again, and a broken one is
// not.
func testAuthorityChanges(t *testing.T, a *api, bundle string) {
	t.Helper()
	next := harness.NewAuthority(t, "next")
	discover := request{method: "GET", path: "/apis", client: a.holder(t, next.Issue(t, "ann"))}
	if got := a.do(t, discover); got.code != http.StatusUnauthorized {
		t.Fatalf("before the change: got code %d, want 401", got.code)
	}
	known, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bundle, slices.Concat(known, next.PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(context.Context) (bool, error) {
		return a.do(t, discover).code == http.StatusOK, nil
	})
	if err != nil {
		t.Errorf("the new authority stays unknown: %v", err)
	}
}
