// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/tls"
	cryptox509 "crypto/x509"
	"errors"
	"net/http"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
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

func TestAuthenticator(t *testing.T) {
	ca, _ := newClientCA(t)
	_, stranger := newClientCA(t)
	withTokens := Users{Tokens: tokenfile.New(map[string]*user.DefaultInfo{"abc": {Name: "jane", Groups: []string{"devs"}}})}
	bearer := func(token string) *http.Request {
		return &http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}
	}
	tests := []struct {
		name    string
		users   Users
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
			request: bearer("abc"),
		},
		{
			name:    "no credentials, tokens are known",
			users:   withTokens,
			request: &http.Request{},
			want:    &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}},
		},
		{
			name:    "token",
			users:   withTokens,
			request: bearer("abc"),
			want:    &user.DefaultInfo{Name: "jane", Groups: []string{"devs", user.AllAuthenticated}},
		},
		{
			name:    "token of nobody",
			users:   withTokens,
			request: bearer("abd"),
		},
		{
			name:    "empty token",
			users:   withTokens,
			request: bearer(""),
		},
		{
			name:    "password where tokens are known",
			users:   withTokens,
			request: &http.Request{Header: http.Header{"Authorization": {"Basic YTpi"}}},
		},
		{
			name:  "token beside the certificate of a foreign authority",
			users: withTokens,
			request: &http.Request{
				Header: http.Header{"Authorization": {"Bearer abc"}},
				TLS:    &tls.ConnectionState{PeerCertificates: []*cryptox509.Certificate{stranger}},
			},
			want: &user.DefaultInfo{Name: "jane", Groups: []string{"devs", user.AllAuthenticated}},
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
			response, ok, err := NewAuthenticator(ca, test.users).AuthenticateRequest(test.request)
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

func TestAuthorizer(t *testing.T) {
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
	// The cluster cannot tell: it has no say.
	authz, err := NewAuthorizer(func() cluster.View { return rules{} })
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

func TestAnonymousPosts(t *testing.T) {
	nobody := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	jane := &user.DefaultInfo{Name: "jane", Groups: []string{user.AllAuthenticated}}
	const path = "/admission/v1/validate"
	tests := []struct {
		name string
		attr authorizer.AttributesRecord
		want authorizer.Decision
	}{
		{"nobody posts", authorizer.AttributesRecord{User: nobody, Verb: "post", Path: path}, authorizer.DecisionAllow},
		{"nobody reads", authorizer.AttributesRecord{User: nobody, Verb: "get", Path: path}, authorizer.DecisionNoOpinion},
		{"nobody posts below", authorizer.AttributesRecord{User: nobody, Verb: "post", Path: path + "/"}, authorizer.DecisionNoOpinion},
		{"nobody posts elsewhere", authorizer.AttributesRecord{User: nobody, Verb: "post", Path: "/admission/v1/mutate"}, authorizer.DecisionNoOpinion},
		{"nobody posts nowhere", authorizer.AttributesRecord{User: nobody, Verb: "post"}, authorizer.DecisionNoOpinion},
		{"a resource with the path", authorizer.AttributesRecord{User: nobody, Verb: "post", Path: path, ResourceRequest: true}, authorizer.DecisionNoOpinion},
		{"somebody posts", authorizer.AttributesRecord{User: jane, Verb: "post", Path: path}, authorizer.DecisionNoOpinion},
		{"somebody with that name posts", authorizer.AttributesRecord{User: &user.DefaultInfo{Name: user.Anonymous}, Verb: "post", Path: path}, authorizer.DecisionNoOpinion},
		{"no user", authorizer.AttributesRecord{Verb: "post", Path: path}, authorizer.DecisionNoOpinion},
	}
	for _, test := range tests {
		got, _, err := AnonymousPosts(path).Authorize(t.Context(), test.attr)
		if got != test.want || err != nil {
			t.Errorf("%s: got %v and error %v, want %v", test.name, got, err, test.want)
		}
	}
}

// rules is a cluster that knows only what users may do.
type rules struct {
	cluster.View
	answer authorizer.UnconditionalAuthorizer
}

func (r rules) Authorizer() authorizer.UnconditionalAuthorizer { return r.answer }

func decide(decision authorizer.Decision, err error) rules {
	return rules{answer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return decision, "so be it", err
	})}
}

// TestAuthorizerAsksTheCluster: for each question as it is then.
func TestAuthorizerAsksTheCluster(t *testing.T) {
	var current rules
	authz, err := NewAuthorizer(func() cluster.View { return current })
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	tests := []struct {
		name   string
		rules  rules
		groups []string
		want   authorizer.Decision
		err    error
	}{
		{name: "allowed", rules: decide(authorizer.DecisionAllow, nil), want: authorizer.DecisionAllow},
		{name: "no opinion", rules: decide(authorizer.DecisionNoOpinion, nil), want: authorizer.DecisionNoOpinion},
		{name: "denied", rules: decide(authorizer.DecisionDeny, nil), want: authorizer.DecisionDeny},
		{name: "broken", rules: decide(authorizer.DecisionNoOpinion, broken), want: authorizer.DecisionNoOpinion, err: broken},
		{name: "cannot tell", want: authorizer.DecisionNoOpinion},
		{name: "masters whatever it says", rules: decide(authorizer.DecisionDeny, broken), groups: []string{user.SystemPrivilegedGroup}, want: authorizer.DecisionAllow},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			current = test.rules
			got, _, err := authz.Authorize(t.Context(), authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: "jane", Groups: test.groups}, Verb: "create", Resource: "admissionpreviews", ResourceRequest: true,
			})
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %v and error %v, want %v and %v", got, err, test.want, test.err)
			}
		})
	}
}
