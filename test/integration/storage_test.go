// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	etcdTimeout = 10 * time.Second

	policyKeys  = "/portcullis.dev/policy.portcullis.dev/validatingadmissionpolicies/"
	bindingKeys = "/portcullis.dev/policy.portcullis.dev/validatingadmissionpolicybindings/"
)

// TestStorage looks at what is in etcd: where objects are and how they are
// written is for ever.
func TestStorage(t *testing.T) {
	a := newAPI(t, withoutConditions())
	etcd := a.etcd(t)
	created := a.createPolicy(t, newPolicy("p"))
	if _, err := a.bindings().Create(t.Context(), newBinding("b", "p"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for key, kind := range map[string]string{policyKeys + "p": "ValidatingAdmissionPolicy", bindingKeys + "b": "ValidatingAdmissionPolicyBinding"} {
		answer, err := etcd.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Kvs) != 1 {
			t.Fatalf("nothing is stored at %s", key)
		}
		want := `{"kind":"` + kind + `","apiVersion":"policy.portcullis.dev/v1alpha1","metadata":{`
		if got := string(answer.Kvs[0].Value); !strings.HasPrefix(got, want) {
			t.Errorf("stored at %s is %s, want it to begin with %s", key, got, want)
		}
	}

	// What an earlier version has written is served.
	golden, err := os.ReadFile(filepath.Join("..", "..", "pkg", "apis", "policy", "v1alpha1", "testdata", "stored", "validatingadmissionpolicy.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Put(t.Context(), policyKeys+"replicas.example.com", string(golden)); err != nil {
		t.Fatal(err)
	}
	if got := a.getPolicy(t, "replicas.example.com"); got.UID != "5bd8ba4e-2b0b-4a2e-9f4d-0c8d7f9f1a11" || got.Status.ObservedGeneration != 3 {
		t.Errorf("stored policy is served as %+v", got)
	}

	a.Restart(t)
	a.connect(t)
	if got := a.getPolicy(t, "p"); !apiequality.Semantic.DeepEqual(got, created) {
		t.Errorf("after a restart %+v, want %+v", got, created)
	}
}

func (a *api) etcd(t *testing.T) *clientv3.Client {
	t.Helper()
	tlsConfig, err := transport.TLSInfo{CertFile: a.Etcd.CertFile, KeyFile: a.Etcd.KeyFile, TrustedCAFile: a.Etcd.TrustedCAFile}.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: a.Etcd.ServerList, TLS: tlsConfig, DialTimeout: etcdTimeout, Context: t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
