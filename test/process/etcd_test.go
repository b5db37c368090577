// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/test/etcdtest"
)

const (
	// refusedWithin is promised for what needs etcd while etcd is gone.
	refusedWithin = 3 * time.Second
	// inStepWithin is promised for the time after etcd is back.
	inStepWithin = 5 * time.Second
)

// TestExternalEtcd is a server on an etcd of others, which asks for certificates:
// it is there before its etcd, outlives it, and keeps nothing of its own.
func TestExternalEtcd(t *testing.T) {
	certificates := etcdtest.NewCertificates(t)
	cluster := etcdtest.New(t, 1, certificates)
	dataDir := filepath.Join(t.TempDir(), "data")
	flags := []string{
		"--secure-port=0", "--etcd-servers=" + strings.Join(cluster.Endpoints(), ","), "--etcd-prefix=/of/the/test",
		"--etcd-cafile=" + certificates.CAFile, "--etcd-certfile=" + certificates.CertFile, "--etcd-keyfile=" + certificates.KeyFile,
	}
	s := launch(t, dataDir, flags...)
	s.wait(t, "a word about etcd in the log", func() bool {
		return strings.Contains(s.stderr.String(), `"etcd cannot be reached`) && strings.Contains(s.stderr.String(), cluster.Endpoints()[0])
	})
	if code := s.get(t, "/livez"); code != http.StatusOK {
		t.Errorf("/livez without etcd: got %d, want 200", code)
	}
	if code := s.get(t, "/readyz"); code != http.StatusInternalServerError {
		t.Errorf("/readyz without etcd: got %d, want 500", code)
	}
	if got := s.stdout.String(); got != "" {
		t.Errorf("announced without etcd: %s", got)
	}
	cluster.Start(t)
	began := time.Now()
	s.waitReady(t)
	if took := time.Since(began); took > inStepWithin {
		t.Errorf("ready %s after etcd, want at most %s", took, inStepWithin)
	}

	policy, binding := newDenial("denied")
	if _, err := s.client(t).PolicyV1alpha1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client(t).PolicyV1alpha1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.wait(t, "the policy in force", func() bool { return s.denies(t, "denied") })
	answer, err := cluster.Client(t).Get(t.Context(), "/of/the/test/policy.portcullis.dev/validatingadmissionpolicies/denied")
	if err != nil || len(answer.Kvs) != 1 {
		t.Errorf("the policy is not where --etcd-prefix says: %v, %v", answer, err)
	}
	if _, err := os.Stat(filepath.Join(dataDir, "etcd")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an etcd of its own was made: %v", err)
	}

	cluster.Stop()
	other, _ := newDenial("other")
	began = time.Now()
	_, err = s.client(t).PolicyV1alpha1().ValidatingAdmissionPolicies().Create(t.Context(), other, metav1.CreateOptions{})
	if took := time.Since(began); !apierrors.IsServiceUnavailable(err) || took > refusedWithin {
		t.Errorf("a write without etcd: got error %v after %s, want 503 within %s", err, took, refusedWithin)
	}
	if !s.denies(t, "denied") || s.denies(t, "other") {
		t.Error("wrong verdicts without etcd")
	}
	cluster.Start(t)
	s.wait(t, "a write after etcd is back", func() bool {
		_, err = s.client(t).PolicyV1alpha1().ValidatingAdmissionPolicies().Create(t.Context(), other, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	s.terminate(t)

	again := launch(t, filepath.Join(t.TempDir(), "another"), flags...)
	again.waitReady(t)
	if !again.denies(t, "denied") {
		t.Error("another server on the same etcd does not know the policy")
	}
	again.terminate(t)
}

// TestStopsWithoutEtcd stops a server that has never had its etcd.
func TestStopsWithoutEtcd(t *testing.T) {
	s := launch(t, filepath.Join(t.TempDir(), "data"), "--secure-port=0", "--etcd-servers=http://127.0.0.1:1")
	s.wait(t, "the server", func() bool { return s.get(t, "/livez") == http.StatusOK })
	s.terminate(t)
}

// wait waits for a condition and fails when the server ends.
func (s *server) wait(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, patience, true, func(context.Context) (bool, error) {
		select {
		case <-s.exited:
			return false, errors.New("the server has ended")
		default:
			return condition(), nil
		}
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v\n%s", what, err, &s.stderr)
	}
}

// get returns the code of the answer to the administrator, or 0 when there is
// none.
func (s *server) get(t *testing.T, path string) int {
	t.Helper()
	if _, err := os.Stat(s.kubeconfig); err != nil {
		return 0
	}
	config := s.config(t)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// denies says whether the ConfigMap of that name may not be created.
func (s *server) denies(t *testing.T, name string) bool {
	t.Helper()
	config := s.config(t)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	denial, err := review(t.Context(), client, config.Host+reviewPath, name)
	if err != nil {
		t.Fatal(err)
	}
	return denial != ""
}
