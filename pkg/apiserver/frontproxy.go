// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
)

// requireFrontProxy refuses to believe whoever shows any certificate of an authority
// and names a user, which is what upstream's authenticator does without the names of
// the proxies (verifySubject in k8s.io/apiserver/pkg/authentication/request/x509). The
// authority and the names are followed in the cluster: as long as no names are there,
// nobody is believed.
func requireFrontProxy(authentication *genericapiserver.AuthenticationInfo) error {
	proxies := authentication.RequestHeaderConfig
	if proxies == nil || proxies.CAContentProvider == nil || !named(proxies) {
		return errors.New("the cluster names no front proxy: every certificate of its authority would speak for every user")
	}
	authentication.Authenticator = believeNamedProxies(authentication.Authenticator, proxies)
	return nil
}

// named says whether proxies has the names of proxies at the moment.
func named(proxies *authenticatorfactory.RequestHeaderConfig) bool {
	if proxies.AllowedClientNames == nil {
		return false
	}
	names := proxies.AllowedClientNames.Value()
	return len(names) > 0 && !slices.Contains(names, "")
}

// believeNamedProxies hides from an authenticator whom a caller says to speak for, as
// long as the cluster does not say who may speak for others. The caller is then who
// their own credentials say.
func believeNamedProxies(known authenticator.Request, proxies *authenticatorfactory.RequestHeaderConfig) authenticator.Request {
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		if !named(proxies) {
			for _, header := range proxies.UsernameHeaders.Value() {
				req.Header.Del(header)
			}
		}
		return known.AuthenticateRequest(req)
	})
}

// frontProxyKnown passes once the authority of the proxies has been read: before, what
// kube-apiserver forwards would be refused.
func frontProxyKnown(authority dynamiccertificates.CAContentProvider) healthz.HealthChecker {
	return healthz.NamedCheck("portcullis-front-proxy", func(*http.Request) error {
		if len(authority.CurrentCABundleContent()) == 0 {
			return errors.New("the authority of the cluster's front proxy has not been read")
		}
		return nil
	})
}
