// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/tls"
	cryptox509 "crypto/x509"
	"net/http"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"
)

func newClientCA(t *testing.T) (dynamiccertificates.CAContentProvider, *cryptox509.Certificate) {
	t.Helper()
	certPEM, _, err := certutil.GenerateSelfSignedCertKey("caller", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := dynamiccertificates.NewStaticCAContent("test", certPEM)
	if err != nil {
		t.Fatal(err)
	}
	return ca, certs[0]
}

func TestStandaloneAuthenticator(t *testing.T) {
	ca, _ := newClientCA(t)
	_, stranger := newClientCA(t)
	tests := []struct {
		name    string
		request *http.Request
		want    user.Info // nil: refused
	}{
		{
			name:    "no credentials",
			request: &http.Request{},
			want:    &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}},
		},
		{
			name:    "unknown token",
			request: &http.Request{Header: http.Header{"Authorization": {"Bearer abc"}}},
		},
		{
			name:    "password",
			request: &http.Request{Header: http.Header{"Authorization": {"Basic YTpi"}}},
		},
		{
			name:    "certificate of a foreign authority",
			request: &http.Request{TLS: &tls.ConnectionState{PeerCertificates: []*cryptox509.Certificate{stranger}}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			response, ok, err := newStandaloneAuthenticator(ca).AuthenticateRequest(test.request)
			if test.want == nil {
				if ok || err == nil {
					t.Errorf("got %v, %v, %v, want an error", response, ok, err)
				}
				return
			}
			if err != nil || !ok {
				t.Fatalf("got %v, %v", ok, err)
			}
			if response.User.GetName() != test.want.GetName() || !slices.Equal(response.User.GetGroups(), test.want.GetGroups()) {
				t.Errorf("user %v, want %v", response.User, test.want)
			}
		})
	}
}

func TestStandaloneAuthorizer(t *testing.T) {
	master := &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
	anyone := &user.DefaultInfo{Name: "anyone", Groups: []string{user.AllAuthenticated}}
	tests := []struct {
		name string
		attr authorizer.AttributesRecord
		want authorizer.Decision
	}{
		{"master writes", authorizer.AttributesRecord{User: master, Verb: "create", Resource: "validatingadmissionpolicies", ResourceRequest: true}, authorizer.DecisionAllow},
		{"master posts to a path", authorizer.AttributesRecord{User: master, Verb: "post", Path: "/admission/v1/validate"}, authorizer.DecisionAllow},
		{"anyone asks for life", authorizer.AttributesRecord{User: anyone, Verb: "get", Path: "/livez"}, authorizer.DecisionAllow},
		{"anyone asks for readiness", authorizer.AttributesRecord{User: anyone, Verb: "get", Path: "/readyz"}, authorizer.DecisionAllow},
		{"anyone asks for health", authorizer.AttributesRecord{User: anyone, Verb: "get", Path: "/healthz"}, authorizer.DecisionAllow},
		{"anyone posts to a probe", authorizer.AttributesRecord{User: anyone, Verb: "post", Path: "/readyz"}, authorizer.DecisionNoOpinion},
		{"anyone looks into a probe", authorizer.AttributesRecord{User: anyone, Verb: "get", Path: "/readyz/etcd"}, authorizer.DecisionNoOpinion},
		{"anyone reads metrics", authorizer.AttributesRecord{User: anyone, Verb: "get", Path: "/metrics"}, authorizer.DecisionNoOpinion},
		{"anyone reads", authorizer.AttributesRecord{User: anyone, Verb: "get", Resource: "validatingadmissionpolicies", ResourceRequest: true}, authorizer.DecisionNoOpinion},
		{"a resource with the path of a probe", authorizer.AttributesRecord{User: anyone, Verb: "get", Path: "/readyz", ResourceRequest: true}, authorizer.DecisionNoOpinion},
	}
	authz, err := newStandaloneAuthorizer()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, _, err := authz.Authorize(t.Context(), test.attr)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("decision %v, want %v", got, test.want)
			}
		})
	}
}
