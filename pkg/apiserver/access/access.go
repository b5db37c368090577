// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access says who the callers of a standalone server are, by certificates
// and tokens, and what they may do, by the RBAC objects of a cluster. It does not
// know what they ask for, nor where the cluster comes from.
package access

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	authenticatorunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizerunion "k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// NewAuthenticator returns an authenticator that knows the holders of client
// certificates by common name and organization, and of tokens. Callers without
// credentials are anonymous; callers with credentials that nobody knows are refused
// (401). As in kube-apiserver, one valid credential of several is enough.
func NewAuthenticator(clientCA dynamiccertificates.CAContentProvider, users Users) authenticator.Request {
	known := []authenticator.Request{newCertificates(clientCA, clock.RealClock{})}
	if users.ClientCA != nil {
		known = append(known, newCertificates(users.ClientCA, clock.RealClock{}))
	}
	if users.Tokens != nil {
		known = append(known, bearertoken.New(users.Tokens))
	}
	return authenticatorunion.NewFailOnError(
		group.NewAuthenticatedGroupAdder(authenticatorunion.New(known...)),
		authenticator.RequestFunc(refuseCredentials),
		anonymous.NewAuthenticator(nil),
	)
}

// refuseCredentials keeps a caller with bad credentials from passing as
// anonymous. The token of the loopback client is checked before it is asked.
func refuseCredentials(req *http.Request) (*authenticator.Response, bool, error) {
	if req.Header.Get("Authorization") != "" {
		return nil, false, errors.New("unknown credentials in the Authorization header: this server knows client certificates, and the bearer tokens that it was given")
	}
	return nil, false, nil
}

// NewAuthorizer returns an authorizer that lets system:masters do everything, and
// everyone ask whether the server is alive and ready. Beyond that, the RBAC objects
// of the cluster that view returns for each question decide; all else is refused.
// What a caller asks cannot widen it: it is not in view.
func NewAuthorizer(view func() cluster.View) (authorizer.Authorizer, error) {
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
		authorizerunion.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: authorizeByView(view)},
	)
}

// AnonymousPosts lets callers without credentials POST to exactly these paths, and has
// no opinion on anything else.
func AnonymousPosts(paths ...string) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		caller := a.GetUser()
		if caller != nil && slices.Contains(caller.GetGroups(), user.AllUnauthenticated) &&
			!a.IsResourceRequest() && a.GetVerb() == "post" && slices.Contains(paths, a.GetPath()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

// authorizeByView has no opinion where the view cannot tell.
func authorizeByView(view func() cluster.View) authorizer.AuthorizerFunc {
	return func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		rules := view().Authorizer()
		if rules == nil {
			return authorizer.DecisionNoOpinion, "", nil
		}
		return rules.Authorize(ctx, a)
	}
}
