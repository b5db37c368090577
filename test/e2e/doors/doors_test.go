// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package doors proves who is let in at the doors of Portcullis in a cluster: through
// the aggregator of kube-apiserver, and at the port of each server.
package doors

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/cluster/clustertest"
)

const (
	groupPath       = "/apis/policy.portcullis.dev/v1alpha1"
	validationsPath = groupPath + "/validations"
	mutationsPath   = groupPath + "/mutations"
	validatePath    = "/admission/v1/validate"
	mutatePath      = "/admission/v1/mutate"

	// customHeader is a header by which front proxies may name a user, beside the usual one.
	customHeader = "X-Custom-User"

	patience = time.Minute
)

// house is a cluster, and what its tests need of it.
type house struct {
	*cluster.Cluster
	client kubernetes.Interface
}

// TestDoors asks at all doors of one cluster, in which webhooks are called without credentials.
func TestDoors(t *testing.T) {
	h := newHouse(t, func(o *cluster.Options) {
		o.ControlPlane.APIServerArgs = append(o.ControlPlane.APIServerArgs, "--requestheader-username-headers="+customHeader)
	})
	t.Run("Replicas", func(t *testing.T) { testReplicas(t, h) })
	t.Run("Aggregator", func(t *testing.T) { testAggregator(t, h) })
	t.Run("Fairness", func(t *testing.T) { testFairness(t, h) })
	t.Run("NoCertificate", func(t *testing.T) { testNoCertificate(t, h) })
}

func newHouse(t *testing.T, change ...func(*cluster.Options)) *house {
	t.Helper()
	c := clustertest.Start(t, change...)
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &house{Cluster: c, client: client}
}

// grant binds a role that the manifests bring to a user or service account.
func (h *house) grant(t *testing.T, role string, subject rbacv1.Subject) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "doors-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
	if _, err := h.client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func userSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// certificate is that of a user of the cluster.
func (h *house) certificate(t *testing.T, user string, groups ...string) *tls.Certificate {
	t.Helper()
	config, err := h.ControlPlane.Config(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	return &certificate
}

// trust verifies a replica as kube-apiserver does: by the authority that the servers
// have written into their APIService.
func (h *house) trust(t *testing.T) *tls.Config {
	t.Helper()
	objects, err := dynamic.NewForConfig(h.Config)
	if err != nil {
		t.Fatal(err)
	}
	services := objects.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	service, err := services.Get(t.Context(), cluster.APIService, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	encoded, _, err := unstructured.NestedString(service.Object, "spec", "caBundle")
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatalf("the APIService names no authority: %q", bundle)
	}
	return &tls.Config{RootCAs: roots, ServerName: cluster.Service + "." + cluster.Namespace + ".svc", MinVersion: tls.VersionTLS12}
}

// clientOf is a client of replicas that shows a certificate.
func (h *house) clientOf(t *testing.T, certificate *tls.Certificate) *http.Client {
	t.Helper()
	config := h.trust(t)
	config.Certificates = []tls.Certificate{*certificate}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// kubectl runs kubectl as the administrator.
func (h *house) kubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	command := h.Kubectl(t.Context(), h.AdminKubeconfig, args...)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	return string(output), err
}

// must runs kubectl, which must succeed.
func (h *house) must(t *testing.T, input string, args ...string) string {
	t.Helper()
	output, err := h.kubectl(t, input, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, output)
	}
	return output
}

// eventually waits until look finds no fault.
func eventually(t *testing.T, what string, look func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = look(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v: %v", what, err, last)
	}
}
