// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/portcullis-dev/portcullis/pkg/pki"
	"github.com/portcullis-dev/portcullis/test/cluster"
)

// certificates is the serving certificate of a cluster.
type certificates struct {
	*testing.T
	cluster *cluster.Cluster
	client  kubernetes.Interface
	objects dynamic.Interface
}

func certificatesOf(t *testing.T, c *cluster.Cluster) *certificates {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &certificates{T: t, cluster: c, client: client, objects: objects}
}

func (s *certificates) apiService() *unstructured.Unstructured {
	s.Helper()
	object, err := s.objects.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}).
		Get(s.Context(), cluster.APIService, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return object
}

// bundle is what the APIService has kube-apiserver trust.
func (s *certificates) bundle() []byte {
	s.Helper()
	bundle, err := bundleOf(s.apiService())
	if err != nil {
		s.Fatal(err)
	}
	return bundle
}

// change changes the Secret.
func (s *certificates) change(change func(data map[string][]byte)) {
	s.Helper()
	secrets := s.client.CoreV1().Secrets(cluster.Namespace)
	eventually(s.T, "the Secret is written", func() string {
		secret, err := secrets.Get(s.Context(), "portcullis-serving", metav1.GetOptions{})
		if err == nil {
			change(secret.Data)
			_, err = secrets.Update(s.Context(), secret, metav1.UpdateOptions{})
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

func (s *certificates) secret() *corev1.Secret {
	s.Helper()
	secret, err := s.client.CoreV1().Secrets(cluster.Namespace).Get(s.Context(), "portcullis-serving", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return secret
}

// shown waits until both replicas show the certificate of the Secret, signed by
// authority.
func (s *certificates) shown(authority *x509.Certificate) {
	s.Helper()
	for _, replica := range s.cluster.Replicas {
		eventually(s.T, replica.Identity+" shows its new certificate", func() string {
			dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
			connection, err := dialer.DialContext(s.Context(), "tcp", replica.Address)
			if err != nil {
				return err.Error()
			}
			defer connection.Close()
			leaf := connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
			if want := pki.Decode(s.secret().Data["tls.crt"]); len(want) != 1 || !want[0].Equal(leaf) {
				return "it is not that of the Secret"
			}
			if err := leaf.CheckSignatureFrom(authority); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

func bundleOf(object *unstructured.Unstructured) ([]byte, error) {
	encoded, _, err := unstructured.NestedString(object.Object, "spec", "caBundle")
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(encoded)
}

// strangers are objects that look like those of Portcullis and are not.
const strangers = `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta9.policy.portcullis.dev.example.com
spec:
  group: policy.portcullis.dev.example.com
  version: v1beta9
  groupPriorityMinimum: 1
  versionPriority: 1
  service: {name: portcullis, namespace: portcullis-system, port: 443}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: portcullis-stranger
webhooks:
- name: stranger.example.com
  admissionReviewVersions: [v1]
  clientConfig:
    service: {name: portcullis, namespace: portcullis-system, path: /stranger, port: 443}
  rules:
  - {operations: [CREATE], apiGroups: [stranger.example.com], apiVersions: [v1], resources: [strangers]}
  sideEffects: None
  failurePolicy: Ignore
`

// TestRotation has the serving certificate and then its authority change under load: no
// request fails, and nothing is written but the server's own Secret and APIService.
func TestRotation(t *testing.T) {
	must(t, shared.ControlPlane, strangers, "apply", "-f", "-")
	t.Cleanup(func() { _, _ = kubectl(t, shared.ControlPlane, strangers, "delete", "-f", "-") })
	all := "apiservices,validatingwebhookconfigurations,mutatingwebhookconfigurations"
	before := objects(t, must(t, shared.ControlPlane, "", "get", all, "-o", "json"))
	s := certificatesOf(t, shared)
	load := judge(t, shared, deny(t, shared, "rotation.example.com"))
	load.more(t, 20)

	// A certificate of which two thirds are over is made anew.
	signer := s.key("signer")
	old := pki.Spec{CommonName: "portcullis-apiserver", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, Names: []string{"portcullis.portcullis-system.svc", "portcullis.portcullis-system.svc.cluster.local", "localhost"}, Lifetime: 90 * 24 * time.Hour}
	past, err := old.Issue(signer, time.Now().Add(-80*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	s.renew(past)
	s.shown(signer.Cert)
	load.more(t, 20)

	// An authority that all have trusted for a day signs.
	next, err := pki.Spec{CommonName: "portcullis-serving-ca", Lifetime: 10 * 365 * 24 * time.Hour}.Issue(nil, time.Now().Add(-25*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	s.change(func(data map[string][]byte) {
		data["next-signer.crt"], data["next-signer.key"] = next.CertPEM, next.KeyPEM
	})
	eventually(t, "the next authority signs", func() string {
		if !bytes.Equal(s.secret().Data["signer.crt"], next.CertPEM) {
			return "it does not"
		}
		return ""
	})
	if got := len(pki.Decode(s.bundle())); got != 2 {
		t.Errorf("kube-apiserver trusts %d authorities, want both", got)
	}
	load.more(t, 20)
	s.renew(past)
	s.shown(next.Cert)
	load.more(t, 100)
	load.check(t, "rotation")

	after := objects(t, must(t, shared.ControlPlane, "", "get", all, "-o", "json"))
	for name, was := range before {
		if is := after[name]; is == nil || is.GetUID() != was.GetUID() {
			t.Errorf("%s was made anew", name)
		} else if own := name == "APIService /"+cluster.APIService; own == (is.GetGeneration() == was.GetGeneration() && is.GetResourceVersion() == was.GetResourceVersion()) && !statusOnly(t, was, is) {
			t.Errorf("%s: written is %v, want %v:\n%s\nbefore:\n%s", name, !own, own, encoded(t, is), encoded(t, was))
		}
	}
}

// statusOnly says whether nothing but the status differs, which kube-apiserver writes.
func statusOnly(t *testing.T, was, is *unstructured.Unstructured) bool {
	t.Helper()
	return is.GetName() != cluster.APIService && encoded(t, was.Object["spec"]) == encoded(t, is.Object["spec"]) && encoded(t, was.Object["webhooks"]) == encoded(t, is.Object["webhooks"])
}

// key is a pair of the Secret.
func (s *certificates) key(name string) *pki.KeyPair {
	s.Helper()
	data := s.secret().Data
	pair, err := pki.ParseKeyPair(data[name+".crt"], data[name+".key"])
	if err != nil {
		s.Fatal(err)
	}
	return pair
}

// renew puts an old certificate into the Secret and waits for a new one.
func (s *certificates) renew(old *pki.KeyPair) {
	s.Helper()
	s.change(func(data map[string][]byte) { data["tls.crt"], data["tls.key"] = old.CertPEM, old.KeyPEM })
	eventually(s.T, "the certificate is made anew", func() string {
		if bytes.Equal(s.secret().Data["tls.crt"], old.CertPEM) {
			return "it is the old one"
		}
		return ""
	})
}

// TestLostCertificates: when the Secret is emptied, the servers make all anew and have
// kube-apiserver trust it.
func TestLostCertificates(t *testing.T) {
	s := certificatesOf(t, shared)
	before := s.bundle()
	uid := s.apiService().GetUID()
	load := judge(t, shared, deny(t, shared, "lost.example.com"))
	load.more(t, 5)
	s.change(func(data map[string][]byte) { clear(data) })
	eventually(t, "kube-apiserver trusts another authority", func() string {
		if bytes.Equal(s.bundle(), before) {
			return "it does not"
		}
		return ""
	})
	s.shown(s.key("signer").Cert)
	load.more(t, 20)
	load.end()
	t.Logf("lost certificates: %d admitted, %d denied, %d failed: %v", load.admitted.Load(), load.denied.Load(), len(load.told()), load.told())
	if got := s.apiService().GetUID(); got != uid {
		t.Errorf("the APIService was made anew")
	}
	wait, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := shared.WaitAvailable(wait); err != nil {
		t.Error(err)
	}
}

// TestRestartsLeaveTheAPIService: servers that stop and start neither make nor remove
// it, nor change it.
func TestRestartsLeaveTheAPIService(t *testing.T) {
	s := certificatesOf(t, shared)
	before := s.apiService()
	restart(t, shared)
	after := s.apiService()
	if before.GetUID() != after.GetUID() || encoded(t, before.Object["spec"]) != encoded(t, after.Object["spec"]) {
		t.Errorf("got\n%s\nbefore\n%s", encoded(t, after), encoded(t, before))
	}
	if got := fmt.Sprint(after.GetDeletionTimestamp()); got != "<nil>" {
		t.Errorf("it is being deleted since %s", got)
	}
}

// restart restarts the replicas one after the other, as a rollout does.
func restart(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for _, replica := range c.Replicas {
		if err := replica.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		waitBalanced(t, c)
	}
}

// waitBalanced waits until the Service leads to all replicas.
func waitBalanced(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	var addresses []string
	for _, replica := range c.Replicas {
		addresses = append(addresses, replica.Address)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Balancer.WaitReady(ctx, addresses...); err != nil {
		t.Fatal(err)
	}
}
