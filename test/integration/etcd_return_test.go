// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/etcdtest"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// TestEtcdLeader changes the leader of three servers, in peace and by force.
func TestEtcdLeader(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 3)
	e := newEtcdAPI(t, cluster)
	for _, test := range []struct {
		name   string
		change func(*testing.T)
	}{
		{name: "moved", change: func(t *testing.T) { t.Helper(); cluster.MoveLeader(t) }},
		{name: "killed", change: func(t *testing.T) { t.Helper(); cluster.KillLeader(t) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			stored, removed, elsewhere := test.name+"-stored", test.name+"-removed", test.name+"-elsewhere"
			e.store(t, stored)
			e.store(t, removed)
			e.waitInForce(t, stored, removed)
			test.change(t)
			if got := verdict(e.review(t, configMapReview(t, stored))); !strings.HasSuffix(got, ": no") {
				t.Errorf("verdict %q, want the denial", got)
			}
			e.putDirectly(t, elsewhere)
			e.deleteDirectly(t, removed)
			e.wantInStep(t, elsewhere, removed)
		})
	}
}

// TestEtcdRestored gives the server an etcd that has gone back: what is in force
// is what is stored now, and no watch waits for a revision of the past.
func TestEtcdRestored(t *testing.T) {
	t.Parallel()
	r := newCopied(t)
	events := r.watchPolicies(t)
	defer events.Stop()

	r.cluster.Stop()
	r.restore(t)
	r.cluster.Start(t)
	began := time.Now()
	r.waitInForce(t, "kept", "removed-later")
	waitFor(t, "what is not in the copy", func() bool { return verdict(r.review(t, configMapReview(t, "added-later"))) == "" })
	t.Logf("in step with the copy after %s", time.Since(began))
	r.putDirectly(t, "elsewhere")
	r.wantInStep(t, "elsewhere", "added-later")
	for range events.ResultChan() {
		continue // until it ends: it could not go on
	}
}

// TestEtcdAbsent starts a server before its etcd.
func TestEtcdAbsent(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t, 1, nil)
	e := newEtcdAPI(t, cluster, harness.WithoutWaiting())
	waitFor(t, "the server to live", func() bool { return e.do(t, request{method: http.MethodGet, path: "/livez"}).code == http.StatusOK })

	review := e.do(t, request{method: http.MethodPost, path: apiserver.ReviewPath, body: configMapReview(t, "any")})
	if review.code != http.StatusServiceUnavailable {
		t.Errorf("review: got %d %s, want 503", review.code, review.body)
	}
	cause := "the stored policies have not been read completely: etcd at " + cluster.Endpoints()[0] + " does not answer: "
	if want := "not yet ready to handle request: " + cause; !strings.Contains(string(review.body), want) {
		t.Errorf("review: got %s, want %s", review.body, want)
	}
	if got := e.do(t, request{method: http.MethodGet, path: "/readyz/portcullis-policies"}); !strings.Contains(string(got.body), cause) {
		t.Errorf("readiness: got %s, want %s", got.body, cause)
	}
	for path, want := range map[string]int{"/readyz": 500, groupPath: 200, "/openapi/v2": 200} {
		if answer := e.do(t, request{method: http.MethodGet, path: path}); answer.code != want {
			t.Errorf("%s: got %d, want %d: %.200s", path, answer.code, want, answer.body)
		}
	}
	for what, call := range map[string]func() error{
		"list": func() error { _, err := e.policies().List(t.Context(), metav1.ListOptions{}); return err },
		"list pages": func() error {
			_, err := e.policies().List(t.Context(), metav1.ListOptions{Limit: 500})
			return err
		},
		"create": func() error {
			_, err := e.policies().Create(t.Context(), newPolicy("p"), metav1.CreateOptions{})
			return err
		},
	} {
		began := time.Now()
		err := call()
		if took := time.Since(began); took > refusedWithin || !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%s: got error %v after %s, want 503 within %s", what, err, took, refusedWithin)
		}
	}
	if age, known := e.snapshot.Age(time.Now()); known {
		t.Errorf("snapshot age %s before anything was read", age)
	}

	cluster.Start(t)
	began := time.Now()
	e.WaitReady(t)
	if took := time.Since(began); took > inStepWithin {
		t.Errorf("ready after %s, want at most %s", took, inStepWithin)
	}
	t.Logf("ready after %s", time.Since(began))
	e.store(t, "p")
	e.waitInForce(t, "p")
}
