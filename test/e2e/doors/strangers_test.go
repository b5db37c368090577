// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package doors

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/test/controlplane"
)

// caller is somebody at a door, and what they are told there before they have sent a
// review: 100 means to go on.
type caller struct {
	name        string
	certificate *tls.Certificate
	headers     http.Header
	direct      int // at the paths of the port
	resource    int // at the resources of the API group
}

// as are the headers in which a front proxy says who asks, here the mightiest.
func as(header string) http.Header {
	return http.Header{header: {"system:apiserver"}, "X-Remote-Group": {"system:masters"}}
}

func bearer(token string, more http.Header) http.Header {
	headers := more.Clone()
	if headers == nil {
		headers = http.Header{}
	}
	headers.Set("Authorization", "Bearer "+token)
	return headers
}

func (h *house) callers(t *testing.T) []caller {
	t.Helper()
	const remote = "X-Remote-User"
	mallory, olga := h.certificate(t, "mallory", "system:nodes"), h.certificate(t, "olga")
	h.grant(t, "portcullis:reviewer", userSubject("olga"))
	token, known := h.token(t, "stranger"), h.token(t, "reviewer")
	h.grant(t, "portcullis:reviewer", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: "reviewer"})
	proxy, other := h.frontProxy(t, controlplane.FrontProxyUser), h.frontProxy(t, "another-proxy")
	foreign := foreignCertificate(t, controlplane.FrontProxyUser)
	impersonating := http.Header{"Impersonate-User": {"admin"}, "Impersonate-Group": {"system:masters"}}
	return []caller{
		{"nobody", nil, nil, 403, 403},
		{"nobody with the headers of a front proxy", nil, as(remote), 403, 403},
		{"nobody with the other headers of a front proxy", nil, as(customHeader), 403, 403},
		{"nobody who impersonates", nil, impersonating, 403, 403},
		{"an unknown token", nil, bearer("nobody-knows-this", nil), 401, 401},
		{"a password, which nobody asks for", nil, http.Header{"Authorization": {"Basic YTpi"}}, 403, 403},
		{"a user of the cluster", mallory, nil, 403, 403},
		{"a user with the headers of a front proxy", mallory, as(remote), 403, 403},
		{"a user with the other headers of a front proxy", mallory, as(customHeader), 403, 403},
		{"a user who impersonates", mallory, impersonating, 403, 403},
		{"a service account", nil, bearer(token, nil), 403, 403},
		{"a service account with the headers of a front proxy", nil, bearer(token, as(remote)), 403, 403},
		{"a certificate of the proxies' authority with another name", other, as(remote), 401, 401},
		{"the same with the other headers", other, as(customHeader), 401, 401},
		{"a certificate of another authority with the name of the proxy", foreign, as(remote), 401, 401},
		{"the proxy that names nobody", proxy, nil, 401, 401},
		{"the proxy with a header that nobody has named", proxy, as("X-Forwarded-User"), 401, 401},
		{"the proxy for a user without rights", proxy, http.Header{remote: {"mallory"}}, 403, 403},
		{"the proxy for a user who impersonates", proxy, http.Header{remote: {"mallory"}, "Impersonate-User": {"admin"}}, 403, 403},
		// Who may is let in by all these ways: what is above is refused for what it lacks.
		{"the proxy for kube-apiserver", proxy, as(remote), 100, 100},
		{"the proxy with the other header", proxy, as(customHeader), 100, 100},
		{"the proxy for a reviewer", proxy, http.Header{remote: {"olga"}}, 100, 403},
		{"a reviewer", olga, nil, 100, 403},
		{"a reviewer's service account", nil, bearer(known, nil), 100, 403},
		{"a reviewer with the headers of a front proxy", olga, as(remote), 100, 403},
	}
}

// testReplicas asks at the ports of the servers, where nobody stands in between.
func testReplicas(t *testing.T, h *house) {
	trust, callers := h.trust(t), h.callers(t)
	for _, replica := range h.Replicas {
		for _, caller := range callers {
			config := trust.Clone()
			if caller.certificate != nil {
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return caller.certificate, nil }
			}
			for _, door := range []struct {
				path string
				code int
			}{{validatePath, caller.direct}, {mutatePath, caller.direct}, {validationsPath, caller.resource}, {mutationsPath, caller.resource}} {
				if got := expectContinue(t, config, replica.Address, door.path, caller.headers); got != door.code {
					t.Errorf("%s at %s of %s: got %d, want %d", caller.name, door.path, replica.Identity, got, door.code)
				}
			}
		}
	}
}

// testAggregator asks kube-apiserver, which forwards to the servers what its users may ask.
func testAggregator(t *testing.T, h *house) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(h.Config.CAData)
	trust := &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	mallory := h.certificate(t, "mallory")
	address := strings.TrimPrefix(h.Host, "https://")
	for _, caller := range []caller{
		{name: "nobody", resource: 403},
		{name: "nobody with the headers of a front proxy", headers: as("X-Remote-User"), resource: 403},
		{name: "an unknown token", headers: bearer("nobody-knows-this", nil), resource: 401},
		{name: "a user without the right", certificate: mallory, resource: 403},
		{name: "such a user with the headers of a front proxy", certificate: mallory, headers: as("X-Remote-User"), resource: 403},
		{name: "such a user who impersonates", certificate: mallory, headers: http.Header{"Impersonate-User": {"admin"}}, resource: 403},
	} {
		config := trust.Clone()
		if caller.certificate != nil {
			config.Certificates = []tls.Certificate{*caller.certificate}
		}
		for _, path := range []string{validationsPath, mutationsPath} {
			if got := expectContinue(t, config, address, path, caller.headers); got != caller.resource {
				t.Errorf("%s at %s of kube-apiserver: got %d, want %d", caller.name, path, got, caller.resource)
			}
		}
	}
	h.testRight(t)
}

// testRight: who may create validations is answered, and may do no more, whoever else
// the headers of the request name.
func (h *house) testRight(t *testing.T) {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "doors-validations"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"policy.portcullis.dev"}, Resources: []string{"validations"}, Verbs: []string{"create"}}},
	}
	if _, err := h.client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	h.grant(t, role.Name, userSubject("vera"))
	config, err := h.ControlPlane.Config("vera")
	if err != nil {
		t.Fatal(err)
	}
	asVera, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	question := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: "policy.portcullis.dev", Resource: "validations"},
	}}
	eventually(t, "kube-apiserver knows the right", func(ctx context.Context) error {
		answer, err := asVera.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, question, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			return errors.New("vera may not yet")
		}
		return err
	})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, headers := range []http.Header{{}, as("X-Remote-User"), as(customHeader)} {
		for path, want := range map[string]int{validationsPath: 200, mutationsPath: 403, groupPath + "/admissionpreviews": 403} {
			got := h.post(t, client, path, headers)
			if got != want {
				t.Errorf("who may create validations, with headers %v, got %d at %s, want %d", headers, got, path, want)
			}
		}
	}
}

const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",` +
	`"kind":{"group":"","version":"v1","kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"},` +
	`"name":"c","namespace":"default","operation":"CREATE","userInfo":{"username":"olga"},` +
	`"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}}}}`

func (h *house) post(t *testing.T, client *http.Client, path string, headers http.Header) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.Host+path, strings.NewReader(review))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = headers.Clone()
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// expectContinue asks whether a review is wanted, sends none, and returns the first
// code of the answer. A server says 100 as soon as it reads the body.
func expectContinue(t *testing.T, config *tls.Config, address, path string, headers http.Header) int {
	t.Helper()
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	connection, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nHost: portcullis\r\nExpect: 100-continue\r\nContent-Length: %d\r\nContent-Type: application/json\r\n", path, len(review))
	if err := headers.Write(&head); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(&head, "\r\n")
	if _, err := connection.Write(head.Bytes()); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var code int
	if _, err := fmt.Sscanf(line, "HTTP/1.1 %d", &code); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return code
}
