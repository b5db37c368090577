// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package controlplane_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portcullis-dev/portcullis/test/controlplane"
	"github.com/portcullis-dev/portcullis/test/controlplane/balancer"
)

// gate is an aggregated API server and a webhook behind a balancer. It tells its callers who they are.
type gate struct {
	*balancer.Balancer
	caBundle []byte
}

func newGate(t *testing.T) *gate {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/apis/gate.example.com/v1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "gate.example.com/v1"})
	})
	mux.HandleFunc("/apis/gate.example.com/v1/whoami", func(w http.ResponseWriter, r *http.Request) {
		answer(w, fmt.Sprintf("%s of %s by %s", r.Header.Get("X-Remote-User"), r.Header.Get("X-Remote-Group"), caller(r)))
	})
	mux.HandleFunc("/admit", func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "asked by " + caller(r)}}
		answer(w, &review)
	})
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	b, err := balancer.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	address := server.Listener.Addr().String()
	b.Add(address)
	if err := b.WaitReady(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	return &gate{Balancer: b, caBundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
}

func answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object) // the caller finds what is wrong with it
}

// caller is the name in the certificate that a caller shows.
func caller(r *http.Request) string {
	if len(r.TLS.PeerCertificates) == 0 {
		return "nobody"
	}
	return r.TLS.PeerCertificates[0].Subject.CommonName
}

// testAggregation reaches an API server through kube-apiserver, which passes on who asks.
func testAggregation(t *testing.T, c *controlplane.ControlPlane, admin kubernetes.Interface, g *gate) {
	for range 2 {
		if err := c.InstallService(t.Context(), "gate", "gate"); err != nil {
			t.Fatal(err)
		}
	}
	apiService := fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.gate.example.com"},"spec":{
"group":"gate.example.com","version":"v1","groupPriorityMinimum":100,"versionPriority":15,"insecureSkipTLSVerify":true,
"service":{"namespace":"gate","name":"gate","port":%d}}}`, g.Port())
	raw := admin.Discovery().RESTClient()
	if err := raw.Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").Body([]byte(apiService)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	var got []byte
	waitFor(t, "the aggregated API", func(ctx context.Context) (bool, error) {
		var err error
		got, err = raw.Get().AbsPath("/apis/gate.example.com/v1/whoami").Do(ctx).Raw()
		return err == nil, nil
	})
	if want := "\"admin of system:masters by front-proxy-client\"\n"; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// testWebhookUser has kube-apiserver show a certificate to a webhook.
func testWebhookUser(t *testing.T, admin kubernetes.Interface, g *gate) {
	url, effect := "https://"+g.Address()+"/admit", admissionregistrationv1.SideEffectClassNone
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "gate.example.com"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "gate.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: g.caBundle},
			Rules:                   []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{"CREATE"}, Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "default"}},
			SideEffects:             &effect,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	webhooks := admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := webhooks.Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const want = `denied the request: asked by webhook-caller`
	waitFor(t, "the webhook", func(ctx context.Context) (bool, error) {
		dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		_, err := admin.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "asked"}}, dryRun)
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		return err != nil, nil
	})
}
