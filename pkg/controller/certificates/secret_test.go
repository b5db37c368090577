// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func testSecret(c *cluster, clock clock.Clock) *secret {
	return &secret{
		client: c.CoreV1().Secrets(namespace), namespace: namespace, name: secretName,
		plan: testPlan("a.example"), clock: clock,
	}
}

func stored(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName}, Data: data}
}

func TestEnsure(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, secretName, errors.New("no rule"))
	tests := []struct {
		name   string
		exists []runtime.Object
		before func(verb string, n int) error
		writes int
		// refused holds parts of the error.
		refused []string
		// waits says that it takes until the end of the context.
		waits bool
	}{
		{name: "absent", writes: 1},
		{name: "empty, as applied with the server", exists: []runtime.Object{stored(nil)}, writes: 1},
		{
			name: "somebody else's", exists: []runtime.Object{stored(map[string][]byte{"tls.crt": []byte("x")})},
			refused: []string{"Secret portcullis-system/portcullis-serving has not been made by this server", "signer.crt", "another name"},
		},
		{
			name: "the cluster does not answer at first", before: func(_ string, n int) error {
				if n < 3 {
					return apierrors.NewServerTimeout(schema.GroupResource{Resource: "secrets"}, "create", 1)
				}
				return nil
			}, writes: 1,
		},
		{
			name: "no right to create", before: func(string, int) error { return forbidden }, waits: true,
			refused: []string{
				"create Secret portcullis-system/portcullis-serving: ", "no rule", "apply an empty Secret",
				"{apiGroups: [\"\"], resources: [secrets], verbs: [create]}",
			},
		},
		{
			name: "no right to update", exists: []runtime.Object{stored(nil)}, before: func(string, int) error { return forbidden }, waits: true,
			refused: []string{"update Secret portcullis-system/portcullis-serving: ", "resourceNames: [portcullis-serving], verbs: [get, list, watch, update]}"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(tc.exists...)
			n := 0
			if tc.before != nil {
				c.before = func(verb string) error {
					n++
					return tc.before(verb, n)
				}
			}
			ctx := t.Context()
			if tc.waits {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
			}
			held, err := testSecret(c, clock.RealClock{}).ensure(ctx, never)
			if len(tc.refused) > 0 {
				for _, want := range tc.refused {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got error %v, want %q in it", err, want)
					}
				}
			} else if err != nil {
				t.Fatal(err)
			} else {
				verifyContents(t, held, time.Now())
			}
			if got := c.written(); got != tc.writes {
				t.Errorf("got %d writes, want %d", got, tc.writes)
			}
		})
	}
}

// TestReplicasAgree starts many at once, with and without an empty Secret.
func TestReplicasAgree(t *testing.T) {
	for name, exists := range map[string][]runtime.Object{"absent": nil, "empty": {stored(nil)}} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(exists...)
			bundles, certs := make([][]byte, 8), make([][]byte, 8)
			var running sync.WaitGroup
			for i := range bundles {
				running.Go(func() {
					held, err := testSecret(c, clock.RealClock{}).ensure(t.Context(), never)
					if err != nil {
						t.Error(err)
						return
					}
					bundles[i], certs[i] = held.data[bundleKey], held.leaves["tls"].CertPEM
				})
			}
			running.Wait()
			for i := range bundles {
				if !bytes.Equal(bundles[i], bundles[0]) || !bytes.Equal(certs[i], certs[0]) {
					t.Errorf("replica %d has other certificates than replica 0", i)
				}
			}
			if got := c.written(); got != 1 {
				t.Errorf("got %d writes, want 1", got)
			}
		})
	}
}

// TestConflictsAreBounded has every write be too late.
func TestConflictsAreBounded(t *testing.T) {
	c := newCluster(stored(nil))
	tried := 0
	c.before = func(string) error {
		tried++
		return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, secretName, errors.New("too late"))
	}
	_, _, err := testSecret(c, clocktesting.NewFakeClock(testTime())).sync(t.Context(), never)
	if !apierrors.IsConflict(err) || tried != attempts {
		t.Errorf("got %d attempts and error %v, want %d attempts and a conflict", tried, err, attempts)
	}
}
