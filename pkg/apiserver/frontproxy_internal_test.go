// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// TestFrontProxiesAreNamed: names that are taken away while the server runs must not
// make everyone a proxy.
func TestFrontProxiesAreNamed(t *testing.T) {
	server := httptest.NewTLSServer(nil) // for its certificate
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	authority, err := dynamiccertificates.NewStaticCAContent("proxies", certificate)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	proxies := &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:  authority,
		UsernameHeaders:    headerrequest.StaticStringSlice{"X-Remote-User"},
		AllowedClientNames: headerrequest.StringSliceProviderFunc(func() []string { return names }),
	}
	credulous := authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		name := req.Header.Get("X-Remote-User")
		return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
	})
	authentication := &genericapiserver.AuthenticationInfo{Authenticator: credulous, RequestHeaderConfig: proxies}
	for _, none := range [][]string{nil, {}, {""}, {"front-proxy-client", ""}} {
		names = none
		if err := requireFrontProxy(authentication); err == nil {
			t.Errorf("proxies %q: no error at start", none)
		}
	}
	names = []string{"front-proxy-client"}
	if err := requireFrontProxy(authentication); err != nil {
		t.Fatal(err)
	}
	believed := func() bool {
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		req.Header.Set("X-Remote-User", "system:admin")
		_, ok, err := authentication.Authenticator.AuthenticateRequest(req)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !believed() {
		t.Error("a proxy is not believed, though the cluster names proxies")
	}
	for _, none := range [][]string{nil, {}, {""}, {"front-proxy-client", ""}} {
		names = none
		if believed() {
			t.Errorf("proxies %q: a proxy is believed, though the cluster names none", none)
		}
	}
}
