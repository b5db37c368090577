// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package recorded repeats, for real, what was recorded from the policies of a real
// kube-apiserver: the policies are stored as ours, the requests are sent to a
// kube-apiserver, and its users are told the same.
package recorded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/test/cluster/clustertest"
)

// unjudged are the recordings of requests about which kube-apiserver does not ask, and
// why. It asks about all others.
var unjudged = map[string]string{
	"seed/matchconditions-demo-lease-skipped-0079": "the registration leaves Leases out",
}

// senders is how many requests are under way at the same time.
const senders = 8

// TestRecorded repeats all recordings at once: each has a namespace of its own, to
// which its policies are confined, or an object that has no namespace.
func TestRecorded(t *testing.T) {
	recordings := append(read(t, "cel/seed.yaml"), read(t, "cel/dev.yaml")...)
	w := newWorld(t, clustertest.Start(t))
	w.letRead(t, rbacv1.PolicyRule{APIGroups: []string{"rules.example.com"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}})
	// From here on nobody makes Pods of Deployments: all requests that are judged are recorded ones.
	if err := w.ControllerManager.Stop(); err != nil {
		t.Fatal(err)
	}
	w.furnish(t, recordings)
	var requests, writes []*recording
	for _, one := range recordings {
		if one.Request != nil {
			requests = append(requests, one)
		} else {
			writes = append(writes, one)
		}
	}
	w.legislate(t, requests)
	t.Run("Requests", func(t *testing.T) { testRequests(t, w, requests) })
	t.Run("Policies", func(t *testing.T) { testPolicies(t, w, writes) })
	t.Logf("repeated for real: %d of %d recordings: %d requests and %d writes of policies",
		len(requests)+len(writes), len(recordings), len(requests), len(writes))
}

// repeated is a request that was sent once more.
type repeated struct {
	*recording
	how string
	got *answer
}

func testRequests(t *testing.T, w *world, recordings []*recording) {
	want := 0
	for _, one := range recordings {
		if unjudged[one.Name] == "" {
			want += len(one.hows())
		}
	}
	before := w.asked(t)
	answers := w.repeat(t, recordings)
	if got := w.asked(t) - before; got != want {
		t.Errorf("kube-apiserver asked about %d requests, want %d", got, want)
	}
	var ids []string
	for _, one := range answers {
		if unjudged[one.Name] == "" { // the log of the control plane leaves Leases out, too
			ids = append(ids, one.got.auditID)
		}
	}
	annotations := w.annotationsOf(t, ids)
	for _, one := range answers {
		for _, difference := range compare(one.recording, one.got, annotations[one.got.auditID]) {
			t.Errorf("%s, %s: %s", one.Name, one.how, difference)
		}
	}
}

const (
	dryRun  = "dry run"
	earnest = "in earnest"
)

// hows are the ways in which a request is sent: as a dry run and in earnest, unless its
// policies tell one from the other.
func (r *recording) hows() []string {
	for _, policy := range r.Policies {
		if strings.Contains(fmt.Sprint(policy.Object), "dryRun") || r.Request.Operation == admissionv1.Connect {
			if r.Request.DryRun != nil && *r.Request.DryRun {
				return []string{dryRun}
			}
			return []string{earnest}
		}
	}
	return []string{dryRun, earnest}
}

// repeat sends each request twice: as a dry run, and in earnest.
func (w *world) repeat(t *testing.T, recordings []*recording) []repeated {
	t.Helper()
	var (
		mu      sync.Mutex
		answers []repeated
		sending sync.WaitGroup
	)
	room := make(chan struct{}, senders)
	for _, one := range recordings {
		room <- struct{}{}
		sending.Go(func() {
			defer func() { <-room }()
			for _, how := range one.hows() {
				got, err := w.send(t.Context(), one, how == dryRun)
				if err != nil {
					t.Errorf("%s, %s: %v", one.Name, how, err)
					return
				}
				mu.Lock()
				answers = append(answers, repeated{recording: one, how: how, got: got})
				mu.Unlock()
			}
		})
	}
	sending.Wait()
	return answers
}

// testPolicies writes what was recorded to be refused, or accepted with warnings.
func testPolicies(t *testing.T, w *world, recordings []*recording) {
	for _, one := range recordings {
		t.Run(one.Name, func(t *testing.T) {
			switch want := one.Want; {
			case want.PolicyRejected != nil:
				testRejected(t, w, one)
			case want.PolicyAccepted:
				testAccepted(t, w, one)
			default:
				t.Errorf("nobody knows how to repeat %+v", want)
			}
		})
	}
}

func testRejected(t *testing.T, w *world, one *recording) {
	author, err := w.author(one)
	if err != nil {
		t.Fatal(err)
	}
	wanted := one.Want.PolicyRejected
	for _, policy := range one.policies(wanted.Kind) {
		_, err := store(t.Context(), author, policy)
		got, ok := refusal(err)
		if text := ours.Replace(wanted.MessageContains); !ok || got.Code != wanted.Code || !strings.Contains(strings.ToLower(got.Message), strings.ToLower(text)) {
			t.Errorf("got %v (%d), want %d with %s", err, got.Code, wanted.Code, text)
		}
	}
}

func testAccepted(t *testing.T, w *world, one *recording) {
	author, err := w.author(one)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range one.Policies {
		if _, err := store(t.Context(), author, policy); err != nil {
			t.Fatal(err)
		}
	}
	if one.Want.TypeChecking == nil {
		return
	}
	for _, policy := range one.policies(policyKind) {
		found := &admissionregistrationv1.ValidatingAdmissionPolicy{} // whose fields ours has
		eventually(t, "type checking", func(ctx context.Context) error {
			got, err := w.objects.Resource(policies).Get(ctx, policy.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, found); err != nil {
				return err
			}
			if found.Status.ObservedGeneration != found.Generation || found.Status.TypeChecking == nil {
				return errors.New("not yet")
			}
			return nil
		})
		if got, want := tidy(found.Status.TypeChecking), tidy(one.Want.TypeChecking); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
