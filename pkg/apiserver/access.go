// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	authenticatorunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizerunion "k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// newStandaloneAuthenticator knows the holders of client certificates by common
// name and organization. Callers without credentials are anonymous; callers with
// credentials that nobody knows are refused (401).
func newStandaloneAuthenticator(clientCA dynamiccertificates.CAContentProvider) authenticator.Request {
	certificates := x509.NewDynamic(clientCA.VerifyOptions, x509.CommonNameUserConversion)
	return authenticatorunion.NewFailOnError(
		group.NewAuthenticatedGroupAdder(certificates),
		authenticator.RequestFunc(refuseCredentials),
		anonymous.NewAuthenticator(nil),
	)
}

// refuseCredentials keeps a caller with a bad token from passing as anonymous.
// The token of the loopback client is checked before it is asked.
func refuseCredentials(req *http.Request) (*authenticator.Response, bool, error) {
	if req.Header.Get("Authorization") != "" {
		return nil, false, errors.New("unknown credentials in the Authorization header: this server knows client certificates only")
	}
	return nil, false, nil
}

// newStandaloneAuthorizer lets system:masters do everything, and everyone ask
// whether the server is alive and ready. All else is refused.
func newStandaloneAuthorizer() (authorizer.Authorizer, error) {
	probes := sets.New("/livez", "/readyz", "/healthz")
	allowProbes := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if !a.IsResourceRequest() && a.GetVerb() == "get" && probes.Has(a.GetPath()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	return authorizerunion.New(
		authorizerunion.NamedAuthorizer{AuthorizerName: "masters", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		authorizerunion.NamedAuthorizer{AuthorizerName: "probes", Authorizer: allowProbes},
	)
}
