// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

func newPolicy(name string) *v1alpha1.ValidatingAdmissionPolicy {
	return &v1alpha1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule: admissionregistrationv1.Rule{
							APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"},
						},
					},
				}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "object.spec.replicas <= 5"}},
		},
	}
}

// TestLife is one server from its first start to its second stop.
func TestLife(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), "data")
	first := launchReady(t, dataDir)

	info, err := os.Stat(first.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("kubeconfig: got mode %#o, want 0600", got)
	}
	want := fmt.Sprintf("portcullis-apiserver is ready at %s\nkubectl --kubeconfig %s get portcullis\n", first.config(t).Host, first.kubeconfig)
	waitFor(t, "the announcement on stdout", func() bool { return first.stdout.String() == want })

	created, err := first.client(t).PolicyV1alpha1().ValidatingAdmissionPolicies().Create(t.Context(), newPolicy("kept"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first.terminate(t)

	second := launchReady(t, dataDir)
	got, err := second.client(t).PolicyV1alpha1().ValidatingAdmissionPolicies().Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("after a restart: %v", err)
	}
	if got.UID != created.UID || got.Generation != created.Generation {
		t.Errorf("after a restart: got uid %s at generation %d, want %s at %d", got.UID, got.Generation, created.UID, created.Generation)
	}
	second.terminate(t)
}

// TestTerminateEndsWatches keeps a client that watches from holding the server up.
func TestTerminateEndsWatches(t *testing.T) {
	s := launchReady(t, filepath.Join(t.TempDir(), "data"))
	watch, err := s.client(t).PolicyV1alpha1().ValidatingAdmissionPolicies().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	began := time.Now()
	s.terminate(t)
	t.Logf("stopped after %s", time.Since(began))
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("stopped only after %s", took)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	s := launchReady(t, filepath.Join(t.TempDir(), "data"))
	known := s.config(t)
	cert, key := foreignCertificate(t)

	tests := map[string]*rest.Config{
		"anonymous":           rest.AnonymousClientConfig(known),
		"unknown certificate": rest.AnonymousClientConfig(known),
		"unknown token":       rest.AnonymousClientConfig(known),
	}
	tests["unknown certificate"].CertData, tests["unknown certificate"].KeyData = cert, key
	tests["unknown token"].BearerToken = "guessed"
	for name, config := range tests {
		t.Run(name, func(t *testing.T) {
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/apis/policy.portcullis.dev/v1alpha1/validatingadmissionpolicies", "/metrics", "/"} {
				response, err := client.Get(config.Host + path)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if code := response.StatusCode; code != http.StatusUnauthorized && code != http.StatusForbidden {
					t.Errorf("GET %s: got code %d, want 401 or 403", path, code)
				}
			}
		})
	}
}

// foreignCertificate claims to be the administrator, and is signed by itself.
func foreignCertificate(t *testing.T) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "portcullis-admin", Organization: []string{"system:masters"}},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// TestWarmStart holds the server to its promise on a data dir that has been used.
// The best of a few starts counts, since the machine may be busy with other tests.
func TestWarmStart(t *testing.T) {
	const promised = 2 * time.Second
	dataDir := filepath.Join(t.TempDir(), "data")
	launchReady(t, dataDir).terminate(t)

	best := time.Duration(1<<63 - 1)
	for range 3 {
		began := time.Now()
		s := launchReady(t, dataDir)
		took := time.Since(began)
		t.Logf("ready after %s", took)
		best = min(best, took)
		s.terminate(t)
	}
	if best >= promised {
		t.Errorf("ready after %s at best, want less than %s", best, promised)
	}
}

func TestVersion(t *testing.T) {
	s := launch(t, t.TempDir(), "--version")
	if code := s.waitExit(t); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	if got := s.stdout.String(); !strings.HasPrefix(got, "portcullis-apiserver ") {
		t.Errorf("got %q, want the name and the version", got)
	}
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, patience, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}
