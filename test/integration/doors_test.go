// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

const (
	// patience is how long a step may take on a busy machine before it counts as stuck.
	patience = 2 * time.Minute
	// askAgain is how often a test looks whether a write is in force.
	askAgain = time.Millisecond

	reviewUID   = "705ab4f5-6393-11e8-b7cc-42010a800002"
	demoPolicy  = "demo-policy.example.com"
	demoBinding = "demo-binding-test.example.com"
	demoDenial  = "ValidatingAdmissionPolicy 'demo-policy.example.com' with binding 'demo-binding-test.example.com' denied request: failed expression: object.spec.replicas <= 5"

	deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"nginx","namespace":"test"},"spec":{"replicas":6}}`
)

// TestDoors runs every test below on one server, each with the demo policy stored
// and in force for Deployments of the namespace test.
func TestDoors(t *testing.T) {
	objects := t.TempDir()
	namespace := []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: test, labels: {environment: test}}\n")
	if err := os.WriteFile(filepath.Join(objects, "namespace.yaml"), namespace, 0o600); err != nil {
		t.Fatal(err)
	}
	var deadline atomic.Int64
	a := newAPI(t, harness.WithObjects(objects), harness.WithConfig(func(c *apiserver.Config) error {
		c.Extra.Handlers[apiserver.ReviewPath] = observeDeadline(c.Extra.Handlers[apiserver.ReviewPath], &deadline)
		return nil
	}))
	tests := []struct {
		name string
		run  func(*testing.T, *api)
	}{
		{"ReviewFollowsWrites", testReviewFollowsWrites},
		{"ReviewNesting", testReviewNesting},
		{"ReviewTimeout", func(t *testing.T, a *api) { testReviewTimeout(t, a, &deadline) }},
		{"Preview", testPreview},
		{"PreviewCandidates", testPreviewCandidates},
		{"PreviewRefused", testPreviewRefused},
		{"PreviewByKubectl", testPreviewByKubectl},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a.reset(t)
			a.waitForVerdict(t, "") // that of the test before is gone
			a.storeDemo(t)
			test.run(t, a)
		})
	}
}

func (a *api) storeDemo(t *testing.T) {
	t.Helper()
	policy := newPolicy(demoPolicy)
	policy.Spec.Validations[0].Message = ""
	a.createPolicy(t, policy)
	binding := newBinding(demoBinding, demoPolicy)
	binding.Spec.MatchResources = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "test"}},
	}
	a.createBinding(t, binding)
	a.waitForVerdict(t, demoDenial)
}

func (a *api) createBinding(t *testing.T, b *v1alpha1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	if _, err := a.bindings().Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// newReview returns a review of the creation of an object.
func newReview(t *testing.T, kind, resource, name, object string) []byte {
	t.Helper()
	group := ""
	if kind == "Deployment" {
		group = "apps"
	}
	return encode(t, &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       reviewUID,
			Kind:      metav1.GroupVersionKind{Group: group, Version: "v1", Kind: kind},
			Resource:  metav1.GroupVersionResource{Group: group, Version: "v1", Resource: resource},
			Name:      name,
			Namespace: "test",
			Operation: admissionv1.Create,
			Object:    runtime.RawExtension{Raw: []byte(object)},
		},
	})
}

func demoReview(t *testing.T) []byte {
	t.Helper()
	return newReview(t, "Deployment", "deployments", "nginx", deployment)
}

// review posts a review that must be judged.
func (a *api) review(t *testing.T, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	response, err := a.tryReview(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// tryReview is review for goroutines, which may not end a test.
func (a *api) tryReview(ctx context.Context, body []byte) (*admissionv1.AdmissionResponse, error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Config.Host+apiserver.ReviewPath, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := a.http.Do(post)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var review admissionv1.AdmissionReview
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the review door answers %d: %s", answer.StatusCode, content)
	}
	if err := json.Unmarshal(content, &review); err != nil {
		return nil, err
	}
	if review.Response == nil || review.Response.UID != reviewUID {
		return nil, fmt.Errorf("the review door answers %s, want a response with the uid of the request", content)
	}
	return review.Response, nil
}

// verdict is the message of a denial, or nothing.
func verdict(response *admissionv1.AdmissionResponse) string {
	if response.Allowed {
		return ""
	}
	if response.Result == nil || response.Result.Message == "" {
		return "denied without a message"
	}
	return response.Result.Message
}

// waitForVerdict waits until what was written is in force.
func (a *api) waitForVerdict(t *testing.T, want string) {
	t.Helper()
	body, got := demoReview(t), ""
	err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(context.Context) (bool, error) {
		got = verdict(a.review(t, body))
		return got == want, nil
	})
	if err != nil {
		t.Fatalf("the verdict stays\n%s\nwant\n%s", got, want)
	}
}

func testReviewFollowsWrites(t *testing.T, a *api) {
	response := a.review(t, demoReview(t))
	if response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid {
		t.Errorf("got result %+v, want 422 Invalid", response.Result)
	}
	elsewhere := bytes.ReplaceAll(demoReview(t), []byte(`"test"`), []byte(`"default"`))
	if got := verdict(a.review(t, elsewhere)); got != "" {
		t.Errorf("in a namespace that is not bound: %s", got)
	}
	if err := a.policies().Delete(t.Context(), demoPolicy, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.waitForVerdict(t, "")
	a.createPolicy(t, newPolicy(demoPolicy))
	a.waitForVerdict(t, strings.Replace(demoDenial, "failed expression: object.spec.replicas <= 5", "too many", 1))
}

// testReviewNesting sends an object as deep as a review may hold: what judges it
// must not fall over.
func testReviewNesting(t *testing.T, a *api) {
	const levels = 9_990
	deep := strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
	object := strings.Replace(deployment, `"spec":{`, `"spec":{"deep":`+deep+",", 1)
	if got := verdict(a.review(t, newReview(t, "Deployment", "deployments", "nginx", object))); got != demoDenial {
		t.Errorf("got %s, want the denial", got)
	}
}

// observeDeadline notes in milliseconds how long the next handler has.
func observeDeadline(next http.Handler, left *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		left.Store(-1)
		if deadline, ok := r.Context().Deadline(); ok {
			left.Store(time.Until(deadline).Milliseconds())
		}
		next.ServeHTTP(w, r)
	})
}

func testReviewTimeout(t *testing.T, a *api, left *atomic.Int64) {
	tests := []struct {
		query string
		code  int
		most  time.Duration
		least time.Duration
	}{
		{query: "", code: 200, most: time.Minute, least: 30 * time.Second},
		{query: "?timeout=20s", code: 200, most: 20 * time.Second, least: 11 * time.Second},
		{query: "?timeout=10s", code: 200, most: 10 * time.Second, least: 5 * time.Second},
		{query: "?timeout=soon", code: 400},
		{query: "?timeout=10", code: 400},
	}
	for _, test := range tests {
		left.Store(0)
		answer := a.do(t, request{method: "POST", path: apiserver.ReviewPath + test.query, body: demoReview(t)})
		if answer.code != test.code {
			t.Errorf("%q: got code %d, want %d: %s", test.query, answer.code, test.code, answer.body)
		}
		got := time.Duration(left.Load()) * time.Millisecond
		if got > test.most || got < test.least {
			t.Errorf("%q: %s left to judge, want %s to %s", test.query, got, test.least, test.most)
		}
	}
}
