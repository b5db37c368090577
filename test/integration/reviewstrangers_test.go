// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// endless is a body that has no end. It counts what is taken from it.
type endless struct{ taken atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.taken.Add(int64(len(p)))
	return copy(p, bytes.Repeat([]byte(" "), len(p))), nil
}

// impostor is somebody who wants a review without being known.
type impostor struct {
	name        string
	headers     http.Header
	certificate *tls.Certificate
	code        int
}

func impostors(t *testing.T) []impostor {
	t.Helper()
	foreign := harness.NewAuthority(t, "portcullis-client-ca").Issue(t, "portcullis-admin", "system:masters")
	proxied := http.Header{"X-Remote-User": {"system:apiserver"}, "X-Remote-Group": {"system:masters"}}
	return []impostor{
		{name: "no credentials", code: http.StatusForbidden},
		{name: "a token that nobody knows", headers: http.Header{"Authorization": {"Bearer nobody-knows-this"}}, code: http.StatusUnauthorized},
		{name: "a password", headers: http.Header{"Authorization": {"Basic YTpi"}}, code: http.StatusUnauthorized},
		{name: "the headers of a front proxy", headers: proxied, code: http.StatusForbidden},
		{name: "the headers of impersonation", headers: http.Header{"Impersonate-User": {"portcullis-admin"}, "Impersonate-Group": {"system:masters"}}, code: http.StatusForbidden},
		{name: "a certificate of another authority", certificate: foreign, code: http.StatusUnauthorized},
		{name: "such a certificate with the headers of a front proxy", certificate: foreign, headers: proxied, code: http.StatusUnauthorized},
	}
}

// testDoorStrangers: who may not ask is told so before the server has taken the review.
func testDoorStrangers(t *testing.T, a *api) {
	for _, phase := range bothPhases {
		for _, path := range phase.paths() {
			for _, caller := range impostors(t) {
				t.Run(path+"/"+caller.name, func(t *testing.T) {
					if got := a.expectContinue(t, path, caller.headers, caller.certificate); got != caller.code {
						t.Errorf("asked before the body is sent, the server answers %d, want %d", got, caller.code)
					}
					got, taken := a.postEndless(t, path, caller)
					if got != caller.code || taken >= apiserver.MaxRequestBodyBytes/4 { // what the connection takes in advance is far less
						t.Errorf("got %d after %d bytes of the body, want %d", got, taken, caller.code)
					}
				})
			}
		}
	}
	// Whom the server knows shows that it would read.
	known := &tls.Certificate{}
	*known = a.certificate(t)
	if got := a.expectContinue(t, validationsPath, nil, known); got != http.StatusContinue {
		t.Errorf("asked by the administrator, the server answers %d, want 100", got)
	}
	if got, taken := a.postEndless(t, validationsPath, impostor{certificate: known}); got != http.StatusRequestEntityTooLarge || taken < apiserver.MaxRequestBodyBytes {
		t.Errorf("the administrator got %d after %d bytes, want 413", got, taken)
	}
}

// certificate is the administrator's.
func (a *api) certificate(t *testing.T) tls.Certificate {
	t.Helper()
	certificate, err := tls.X509KeyPair(a.Config.CertData, a.Config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// postEndless posts a body without an end over HTTP/2, and returns the code of the
// answer and how much of the body has been taken.
func (a *api) postEndless(t *testing.T, path string, caller impostor) (int, int64) {
	t.Helper()
	client := a.stranger(t)
	if caller.certificate != nil {
		client = a.holder(t, caller.certificate)
	}
	body := &endless{}
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.Config.Host+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if caller.headers != nil {
		post.Header = caller.headers.Clone()
	}
	post.Header.Set("Content-Type", jsonType)
	answer, err := client.Do(post)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode, body.taken.Load()
}

// expectContinue asks over HTTP/1.1 whether the body is wanted, sends none, and returns
// the first code of the answer. net/http says 100 as soon as somebody reads the body.
func (a *api) expectContinue(t *testing.T, path string, headers http.Header, certificate *tls.Certificate) int {
	t.Helper()
	config, err := rest.TLSConfigFor(a.Anonymous())
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{"http/1.1"}
	if certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	connection, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", strings.TrimPrefix(a.Config.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	var head bytes.Buffer
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nHost: portcullis\r\nExpect: 100-continue\r\nContent-Length: 1000\r\nContent-Type: application/json\r\n", path)
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

// TestAnonymousReviews: with the flag, callers without credentials may ask at the direct
// doors, and may do nothing else.
func TestAnonymousReviews(t *testing.T) {
	a := newAPI(t, harness.WithConfig(func(c *apiserver.Config) error { return c.SetAnonymousReviews(true) }))
	body := configMapReview(t, "c")
	tests := []struct {
		method, path string
		code         int
	}{
		{"POST", apiserver.ReviewPath, 200},
		{"POST", apiserver.ReviewPath + "?timeout=5s", 200},
		{"POST", apiserver.MutationPath, 200},
		{"GET", apiserver.ReviewPath, 403},
		{"POST", apiserver.ReviewPath + "/", 403},
		{"POST", apiserver.ReviewPath + "/x", 403},
		{"POST", "/" + apiserver.ReviewPath, 403},
		{"POST", "/admission/v1/../v1/validate", 403},
		{"POST", "/admission/v1", 403},
		{"POST", validationsPath, 403},
		{"POST", mutationsPath, 403},
		{"POST", groupPath + "/admissionpreviews", 403},
		{"POST", policiesPath, 403},
		{"GET", policiesPath, 403},
		{"GET", "/metrics", 403},
		{"GET", "/apis", 403},
	}
	stranger := a.stranger(t)
	for _, test := range tests {
		if got := a.do(t, request{method: test.method, path: test.path, body: body, client: stranger}); got.code != test.code {
			t.Errorf("%s %s without credentials: got %d: %s, want %d", test.method, test.path, got.code, got.body, test.code)
		}
		if got := a.do(t, request{method: test.method, path: test.path, body: body, client: stranger, token: "nobody"}); got.code != http.StatusUnauthorized {
			t.Errorf("%s %s with an unknown token: got %d: %s, want 401", test.method, test.path, got.code, got.body)
		}
	}
}
