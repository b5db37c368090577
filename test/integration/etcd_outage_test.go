// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/follow"
	"github.com/portcullis-dev/portcullis/test/etcdtest"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

const (
	// refusedWithin is promised for what needs etcd while etcd is gone.
	refusedWithin = 3 * time.Second
	// inStepWithin is promised for the time after etcd is back.
	inStepWithin = 5 * time.Second
)

// etcdAPI is a server that stores in etcd servers which can be taken from it.
type etcdAPI struct {
	*api
	cluster  *etcdtest.Cluster
	snapshot *follow.Snapshot
	direct   *clientv3.Client // past the server, and past what is cut
}

func newEtcdAPI(t *testing.T, cluster *etcdtest.Cluster, opts ...harness.Option) *etcdAPI {
	t.Helper()
	e := &etcdAPI{cluster: cluster, direct: cluster.Client(t)}
	e.api = newAPI(t, append(opts, harness.WithEtcd(cluster.Endpoints()...), harness.WithConfig(func(c *apiserver.Config) error {
		e.snapshot = c.Snapshot
		return nil
	}))...)
	return e
}

// TestEtcdGone takes etcd away in several ways and gives it back.
func TestEtcdGone(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	e := newEtcdAPI(t, cluster)
	tests := []struct {
		name string
		gone func(*testing.T)
		back func(*testing.T)
	}{
		{name: "refused", gone: func(*testing.T) { cluster.Cut() }, back: func(t *testing.T) { t.Helper(); cluster.Heal(t) }},
		{name: "silent", gone: func(*testing.T) { cluster.Freeze() }, back: func(t *testing.T) { t.Helper(); cluster.Heal(t) }},
		{name: "compacted", gone: func(*testing.T) { cluster.Cut() }, back: func(t *testing.T) {
			t.Helper()
			e.compact(t)
			cluster.Heal(t)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stored, removed, elsewhere := test.name+"-stored", test.name+"-removed", test.name+"-elsewhere"
			e.store(t, stored)
			e.store(t, removed)
			e.waitInForce(t, stored, removed)
			events := e.watchPolicies(t)
			defer events.Stop()
			waitFor(t, "a snapshot in step", func() bool { age, known := e.snapshot.Age(time.Now()); return known && age < 3*time.Second })

			test.gone(t)
			e.putDirectly(t, elsewhere)
			e.deleteDirectly(t, removed)
			e.wantWithoutEtcd(t, stored, elsewhere)
			if age, known := e.snapshot.Age(time.Now()); !known || age < time.Second {
				t.Errorf("snapshot age %s, %t; want at least a second", age, known)
			}
			if got := verdict(e.review(t, configMapReview(t, removed))); got == "" {
				t.Error("a policy of the last snapshot does not judge")
			}

			test.back(t)
			e.wantInStep(t, elsewhere, removed)
			if test.name != "compacted" {
				wantAdded(t, events, elsewhere)
			}
		})
	}
}

// wantWithoutEtcd expects that verdicts are those of the last snapshot, that what
// needs etcd is refused soon and plainly, and that all else answers.
func (e *etcdAPI) wantWithoutEtcd(t *testing.T, denied, allowed string) {
	t.Helper()
	var group sync.WaitGroup
	for what, call := range e.callsOfEtcd(t, denied) {
		group.Go(func() {
			began := time.Now()
			err := call()
			took := time.Since(began)
			if !apierrors.IsServiceUnavailable(err) || !strings.HasPrefix(err.Error(), "the storage (etcd at "+e.cluster.Endpoints()[0]+") does not answer: ") {
				t.Errorf("%s: got error %v, want 503 and a plain word", what, err)
			}
			if took > refusedWithin {
				t.Errorf("%s: refused after %s, want at most %s", what, took, refusedWithin)
			}
		})
	}
	for range 10 {
		if got := verdict(e.review(t, configMapReview(t, denied))); !strings.HasSuffix(got, ": no") {
			t.Errorf("verdict %q, want the denial", got)
		}
		if got := verdict(e.review(t, configMapReview(t, allowed))); got != "" {
			t.Errorf("verdict %q, want none", got)
		}
	}
	group.Wait()
	for path, want := range map[string]int{
		"/livez": 200, "/readyz": 200, "/healthz": 500, "/healthz/etcd": 500, "/version": 200, "/apis": 200, groupPath: 200,
		"/openapi/v2": 200, "/openapi/v3/apis/policy.portcullis.dev/v1alpha1": 200, "/metrics": 200,
	} {
		if answer := e.do(t, request{method: http.MethodGet, path: path}); answer.code != want {
			t.Errorf("%s: got %d, want %d: %.200s", path, answer.code, want, answer.body)
		}
	}
}

// callsOfEtcd are calls that cannot be answered without etcd.
func (e *etcdAPI) callsOfEtcd(t *testing.T, existing string) map[string]func() error {
	t.Helper()
	ctx := t.Context()
	changed := configMapPolicy(existing, existing, "no")
	patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	return map[string]func() error{
		"create": func() error {
			_, err := e.policies().Create(ctx, configMapPolicy("new", "new", "no"), metav1.CreateOptions{})
			return err
		},
		"update": func() error {
			changed.ResourceVersion = "1"
			_, err := e.policies().Update(ctx, changed, metav1.UpdateOptions{})
			return err
		},
		"patch": func() error {
			_, err := e.policies().Patch(ctx, existing, "application/merge-patch+json", patch, metav1.PatchOptions{})
			return err
		},
		"delete": func() error { return e.policies().Delete(ctx, existing, metav1.DeleteOptions{}) },
		"delete all": func() error {
			return e.policies().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
		"get": func() error {
			_, err := e.policies().Get(ctx, existing, metav1.GetOptions{})
			return err
		},
		"list": func() error {
			_, err := e.policies().List(ctx, metav1.ListOptions{})
			return err
		},
		"list pages": func() error {
			_, err := e.policies().List(ctx, metav1.ListOptions{Limit: 500})
			return err
		},
	}
}

// wantInStep expects that the server follows etcd soon: what was written and
// deleted meanwhile is known, and writes work.
func (e *etcdAPI) wantInStep(t *testing.T, written, deleted string) {
	t.Helper()
	began := time.Now()
	waitFor(t, "what was written meanwhile", func() bool { return verdict(e.review(t, configMapReview(t, written))) != "" })
	waitFor(t, "what was deleted meanwhile", func() bool { return verdict(e.review(t, configMapReview(t, deleted))) == "" })
	waitFor(t, "a write", func() bool {
		_, err := e.policies().Create(t.Context(), configMapPolicy(written+"-later", "later", "no"), metav1.CreateOptions{})
		if err != nil && !apierrors.IsServiceUnavailable(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	took := time.Since(began)
	t.Logf("in step after %s", took)
	if took > inStepWithin {
		t.Errorf("in step after %s, want at most %s", took, inStepWithin)
	}
	waitFor(t, "a snapshot in step", func() bool { age, known := e.snapshot.Age(time.Now()); return known && age < 3*time.Second })
	waitFor(t, "health", func() bool { return e.do(t, request{method: http.MethodGet, path: "/healthz"}).code == http.StatusOK })
}

// store stores a policy and its binding that deny the ConfigMap of their name.
func (e *etcdAPI) store(t *testing.T, name string) {
	t.Helper()
	e.createPolicy(t, configMapPolicy(name, name, "no"))
	e.createBinding(t, newBinding(name, name))
}

func (e *etcdAPI) waitInForce(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		waitFor(t, name+" in force", func() bool { return verdict(e.review(t, configMapReview(t, name))) != "" })
	}
}

// putDirectly is store as another server on the same etcd does it.
func (e *etcdAPI) putDirectly(t *testing.T, name string) {
	t.Helper()
	policy, binding := configMapPolicy(name, name, "no"), newBinding(name, name)
	policy.UID, binding.UID = "5bd8ba4e-2b0b-4a2e-9f4d-0c8d7f9f1a11", "5bd8ba4e-2b0b-4a2e-9f4d-0c8d7f9f1a12"
	for key, object := range map[string]any{policyKeys + name: policy, bindingKeys + name: binding} {
		value := string(encode(t, object))
		e.write(t, "put "+key, func() error { _, err := e.direct.Put(t.Context(), key, value); return err })
	}
}

func (e *etcdAPI) deleteDirectly(t *testing.T, name string) {
	t.Helper()
	key := policyKeys + name
	e.write(t, "delete "+key, func() error { _, err := e.direct.Delete(t.Context(), key); return err })
}

// write writes again what a cluster without a leader refused: nobody knows
// whether a write that ended so was done, and these may be done twice.
func (e *etcdAPI) write(t *testing.T, what string, write func() error) {
	t.Helper()
	waitFor(t, what, func() bool {
		err := write()
		if known := (rpctypes.EtcdError{}); errors.As(err, &known) && known.Code() == codes.Unavailable {
			return false
		}
		if err != nil && status.Code(err) != codes.Unavailable {
			t.Fatalf("%s: %v", what, err)
		}
		return err == nil
	})
}

// compact removes the history of everything up to now.
func (e *etcdAPI) compact(t *testing.T) {
	t.Helper()
	answer, err := e.direct.Get(t.Context(), policyKeys)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.direct.Compact(t.Context(), answer.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
}

func (e *etcdAPI) watchPolicies(t *testing.T) watch.Interface {
	t.Helper()
	list, err := e.policies().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := e.policies().Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// wantAdded expects that a watch which began before etcd was gone has gone on.
func wantAdded(t *testing.T, events watch.Interface, name string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				t.Error("the watch has ended")
				return
			}
			if policy, ok := event.Object.(*v1alpha1.ValidatingAdmissionPolicy); ok && event.Type == watch.Added && policy.Name == name {
				return
			}
		case <-deadline:
			t.Errorf("the watch has not seen %s after %s", name, patience)
			return
		}
	}
}
