// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/etcdtest"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// mendedWithin is how long it may take until a server notices by itself that it
// holds what is not stored, and holds what is.
const mendedWithin = 15 * time.Second

// otherKey is written by other users of the same etcd.
const otherKey = "/registry/leases/other"

// restored is a server whose etcd can be replaced by a copy that is a little
// older: it has no added-later, and removed-later still.
type restored struct {
	*etcdAPI
	restore func(testing.TB)
}

// newCopied returns a server before its etcd is replaced.
func newCopied(t *testing.T) restored {
	t.Helper()
	cluster := etcdtest.Start(t, 1)
	e := newEtcdAPI(t, cluster)
	e.store(t, "kept")
	e.store(t, "removed-later")
	e.waitInForce(t, "kept", "removed-later")
	cluster.Stop()
	r := restored{etcdAPI: e, restore: cluster.Copy(t)}
	cluster.Start(t)
	e.store(t, "added-later")
	e.waitInForce(t, "added-later")
	if err := e.policies().Delete(t.Context(), "removed-later", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the deletion", func() bool { return verdict(e.review(t, configMapReview(t, "removed-later"))) == "" })
	return r
}

// newRestored returns a server whose etcd is replaced and not yet started.
func newRestored(t *testing.T) restored {
	t.Helper()
	r := newCopied(t)
	r.cluster.Stop()
	r.restore(t)
	return r
}

func (r restored) writeElsewhere(t *testing.T, i int) {
	t.Helper()
	if _, err := r.direct.Put(t.Context(), otherKey, fmt.Sprint(i)); err != nil {
		t.Fatal(err)
	}
}

// wrong says what is not judged by the copy.
func (r restored) wrong(t *testing.T) string {
	t.Helper()
	switch {
	case verdict(r.review(t, configMapReview(t, "removed-later"))) == "":
		return "a stored policy does not judge"
	case verdict(r.review(t, configMapReview(t, "added-later"))) != "":
		return "a policy that is not stored judges"
	case verdict(r.review(t, configMapReview(t, "kept"))) == "":
		return "an old policy does not judge"
	}
	return ""
}

// wantHonest expects that the copy is in force soon, and that nobody is told
// before that it was compared since etcd was back.
func (r restored) wantHonest(t *testing.T, back time.Time, between func()) {
	t.Helper()
	waitFor(t, "the copy to be in force", func() bool {
		between()
		asked := time.Now()
		age, known := r.snapshot.Age(asked)
		wrong := r.wrong(t)
		if wrong != "" && known && asked.Add(-age).After(back) {
			t.Errorf("%s, and the snapshot is said to be %s old, %s after etcd is back", wrong, age, asked.Sub(back))
		}
		return wrong == ""
	})
	took := time.Since(back)
	t.Logf("in step with the copy after %s", took)
	if took > mendedWithin {
		t.Errorf("in step with the copy after %s, want at most %s", took, mendedWithin)
	}
	waitFor(t, "a snapshot in step", func() bool {
		between()
		age, known := r.snapshot.Age(time.Now())
		return known && time.Now().Add(-age).After(back)
	})
	if wrong := r.wrong(t); wrong != "" {
		t.Error(wrong)
	}
}

// TestEtcdRestoredBusy restores an etcd that others write to all the time.
func TestEtcdRestoredBusy(t *testing.T) {
	t.Parallel()
	r := newRestored(t)
	back := time.Now()
	r.cluster.Start(t)
	writes := 0
	r.wantHonest(t, back, func() {
		for range 20 {
			r.writeElsewhere(t, writes)
			writes++
		}
	})
}

// TestEtcdRestoredAndOvertaken restores an etcd that others write to, before the
// server sees it, until it has overtaken what the server has seen.
func TestEtcdRestoredAndOvertaken(t *testing.T) {
	t.Parallel()
	r := newRestored(t)
	r.cluster.StartHidden(t)
	for i := range 500 {
		r.writeElsewhere(t, i)
	}
	back := time.Now()
	r.cluster.Heal(t)
	r.wantHonest(t, back, func() {})
}

// TestEtcdManyInOneRevision writes many policies in one transaction while the
// network comes and goes: none is missed.
func TestEtcdManyInOneRevision(t *testing.T) {
	t.Parallel()
	const many, rounds = 100, 6
	cluster := etcdtest.Start(t, 1)
	e := newEtcdAPI(t, cluster)
	policy := configMapPolicy("x", "x", "no")
	policy.UID, policy.Generation = "5bd8ba4e-2b0b-4a2e-9f4d-0c8d7f9f1a11", 1
	whole := string(encode(t, policy))
	for round := range rounds {
		var ops []clientv3.Op
		for i := range many {
			name := fmt.Sprintf("many-%d-%d", round%2, i)
			value := strings.Replace(whole, `"name":"x"`, `"name":"`+name+`"`, 1)
			ops = append(ops, clientv3.OpPut(policyKeys+name, value))
		}
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := e.direct.Txn(t.Context()).Then(ops...).Commit(); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() { cluster.Cut(); cluster.Heal(t) })
		group.Wait()
		written := time.Now()
		waitFor(t, "all policies of the transaction", func() bool {
			age, known := e.snapshot.Age(time.Now())
			return known && time.Now().Add(-age).After(written)
		})
		if got, want := len(e.policyNames(t, metav1.ListOptions{ResourceVersion: "0"})), many*min(round+1, 2); got != want {
			t.Errorf("round %d: the server holds %d policies, want %d", round, got, want)
		}
	}
}

// TestEtcdEmptyValue deletes through the API a policy of which nothing is stored
// but the key: it is gone, although etcd cannot tell what was deleted.
func TestEtcdEmptyValue(t *testing.T) {
	t.Parallel()
	e := newEtcdAPI(t, etcdtest.Start(t, 1))
	e.createBinding(t, newBinding("x", "x"))
	if _, err := e.direct.Put(t.Context(), policyKeys+"x", ""); err != nil {
		t.Fatal(err)
	}
	e.waitInForce(t, "any")
	if err := e.policies().Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	waitFor(t, "the deletion", func() bool { return verdict(e.review(t, configMapReview(t, "any"))) == "" })
	t.Logf("out of force after %s", time.Since(began))
	if got := e.policyNames(t, metav1.ListOptions{ResourceVersion: "0"}); len(got) != 0 {
		t.Errorf("the watch cache holds %v", got)
	}
}

// TestEtcdKeysOfNoObject compares what no client of the API can store.
func TestEtcdKeysOfNoObject(t *testing.T) {
	t.Parallel()
	e := newEtcdAPI(t, etcdtest.Start(t, 1))
	for _, key := range []string{"a/b", "100%", ".."} {
		if _, err := e.direct.Put(t.Context(), policyKeys+key, "garbage"); err != nil {
			t.Fatal(err)
		}
	}
	written := time.Now()
	waitFor(t, "a snapshot in step", func() bool {
		age, known := e.snapshot.Age(time.Now())
		return known && time.Now().Add(-age).After(written)
	})
}

// TestEtcdShortTimeout: callers who do not wait do not make etcd unhealthy.
func TestEtcdShortTimeout(t *testing.T) {
	t.Parallel()
	e := newEtcdAPI(t, etcdtest.Start(t, 1))
	e.store(t, "p")
	for range 300 {
		err := e.client.PolicyV1alpha1().RESTClient().Get().Resource("validatingadmissionpolicies").Name("p").Param("timeout", "300us").Do(t.Context()).Error()
		if apierrors.IsServiceUnavailable(err) {
			t.Fatalf("etcd is blamed for the patience of a caller: %v", err)
		}
		if health := e.do(t, request{method: http.MethodGet, path: "/healthz/etcd"}); health.code != http.StatusOK {
			t.Fatalf("/healthz/etcd: %s", health.body)
		}
	}
}

// TestEtcdManyRestored: a comparison of many policies takes no part of the time
// that etcd has for one answer. It would take too much from parallel tests.
func TestEtcdManyRestored(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills an etcd")
	}
	const many, batch = 2000, 100
	cluster := etcdtest.Start(t, 1)
	e := newEtcdAPI(t, cluster, harness.WithConfig(func(c *apiserver.Config) error {
		delete(c.Extra.Hooks, apiserver.ConditionsHook)
		return nil
	}))
	policy := configMapPolicy("x", "x", "no")
	policy.UID, policy.Generation = "5bd8ba4e-2b0b-4a2e-9f4d-0c8d7f9f1a11", 1
	whole := string(encode(t, policy))
	for i := 0; i < many; i += batch {
		var ops []clientv3.Op
		for j := i; j < i+batch; j++ {
			name := fmt.Sprintf("many-%d", j)
			ops = append(ops, clientv3.OpPut(policyKeys+name, strings.Replace(whole, `"name":"x"`, `"name":"`+name+`"`, 1)))
		}
		if _, err := e.direct.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	confirmed := func(since time.Time) func() bool {
		return func() bool {
			age, known := e.snapshot.Age(time.Now())
			return known && time.Now().Add(-age).After(since)
		}
	}
	written := time.Now()
	waitFor(t, "all policies in force", confirmed(written))
	t.Logf("confirmed %s after the last write", time.Since(written))
	cluster.Stop()
	restore := cluster.Copy(t)
	cluster.Start(t)
	if _, err := e.direct.Put(t.Context(), otherKey, "1"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the write of another one", confirmed(time.Now()))
	cluster.Stop()
	restore(t)
	back := time.Now()
	cluster.Start(t)
	waitFor(t, "all policies in force again", confirmed(back))
	t.Logf("confirmed %s after etcd is back", time.Since(back))
}
