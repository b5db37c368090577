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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/cluster/clustertest"
)

// unjudged are the recordings of requests about which kube-apiserver does not ask, and
// why: these are admitted. It asks about all others.
var unjudged = map[string]string{
	"seed/matchconditions-demo-lease-skipped-0079": leases,
	"builtin/lease-holder-1-1343":                  leases,
	"builtin/lease-holder-2-1344":                  leases,
}

const leases = "the registration leaves Leases out"

// TestRecorded repeats all recordings at once: the policies of each are confined to a
// namespace of its own, or to an object that has no namespace. There is none that
// cannot be repeated.
func TestRecorded(t *testing.T) {
	seed, dev := read(t, "cel/seed.yaml"), read(t, "cel/dev.yaml")
	recordings := append(seed, dev...)
	w := newWorld(t, clustertest.Start(t, func(o *cluster.Options) {
		// It was off in the recorded kube-apiserver: there are Pods without a service account.
		o.ControlPlane.APIServerArgs = append(o.ControlPlane.APIServerArgs, "--disable-admission-plugins=ServiceAccount")
	}))
	w.letRead(t,
		rbacv1.PolicyRule{APIGroups: []string{"rules.example.com"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}},
	)
	// From here on nobody makes Pods of Deployments: all requests that are judged are recorded ones.
	if err := w.ControllerManager.Stop(); err != nil {
		t.Fatal(err)
	}
	w.giveTime(t)
	w.furnish(t, recordings)
	requests, writes := split(recordings, func(one *recording) bool { return one.Request != nil })
	w.legislate(t, requests)
	t.Run("Requests", func(t *testing.T) { testRequests(t, w, requests) })
	t.Run("Policies", func(t *testing.T) { testPolicies(t, w, writes) })
	t.Logf("repeated for real: %d recordings of the documentation and %d others; these are %d requests, of which %d are not judged, and %d writes of policies",
		len(seed), len(dev), len(requests), len(unjudged), len(writes))
}

// repeated is a request that was sent once more.
type repeated struct {
	*recording
	how string
	got *answer
}

func testRequests(t *testing.T, w *world, recordings []*recording) {
	expected := 0
	for _, one := range recordings {
		if unjudged[one.Name] == "" {
			expected += len(one.hows())
		}
	}
	before := w.asked(t)
	answers := w.repeat(t, recordings)
	if got := w.asked(t) - before; got != expected {
		t.Errorf("kube-apiserver asked about %d requests, want %d", got, expected)
	}
	var ids []string
	for _, one := range answers {
		if one.logged() {
			ids = append(ids, one.got.auditID)
		}
	}
	annotations := w.annotationsOf(t, ids)
	for _, one := range answers {
		wanted := &one.Want
		if unjudged[one.Name] != "" {
			wanted = &want{Allowed: new(true)}
		}
		for _, difference := range compare(wanted, one.got, annotations[one.got.auditID]) {
			t.Errorf("%s, %s: %s", one.Name, one.how, difference)
		}
	}
}

// logged says whether the audit log of the control plane tells of the request.
func (r *recording) logged() bool {
	resource := r.Request.RequestResource.Resource
	return resource != "leases" && resource != "events"
}

const (
	dryRun  = "dry run"
	earnest = "in earnest"
)

// hows are the ways in which a request is sent: as a dry run and in earnest, unless its
// policies tell one from the other, or it stores nothing.
func (r *recording) hows() []string {
	sees := func(policy unstructured.Unstructured) bool {
		return strings.Contains(fmt.Sprint(policy.Object), "dryRun")
	}
	if !slices.ContainsFunc(r.Policies, sees) && r.Request.Operation != admissionv1.Connect {
		return []string{dryRun, earnest}
	}
	if r.Request.DryRun != nil && *r.Request.DryRun {
		return []string{dryRun}
	}
	return []string{earnest}
}

// repeat sends each request in all its ways.
func (w *world) repeat(t *testing.T, recordings []*recording) []repeated {
	t.Helper()
	var (
		mu      sync.Mutex
		answers []repeated
	)
	ask := func(one *recording) {
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
	}
	costly, quick := split(recordings, func(one *recording) bool {
		return strings.Contains(one.Name, "cost") || strings.Contains(one.Name, "budget")
	})
	each(quick, ask)
	for _, one := range costly { // a whole budget takes a second or more
		ask(one)
	}
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
