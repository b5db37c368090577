// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults_test holds the table of docs/faults.md: what goes wrong, what
// then happens to requests that a policy matches and to all others, and what the
// user sees. Each row runs against a real server through the review door.
package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
	policyclient "github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned/typed/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

const (
	patience = 2 * time.Minute
	askAgain = 2 * time.Millisecond
)

// world is a server and its clients.
type world struct {
	*harness.Server
	http   *http.Client
	client policyclient.PolicyV1alpha1Interface
	marks  int
}

func newWorld(t *testing.T, options ...harness.Option) *world {
	t.Helper()
	w := &world{Server: harness.Start(t, options...)}
	var err error
	if w.http, err = rest.HTTPClientFor(w.Config); err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	w.client = client.PolicyV1alpha1()
	return w
}

// store puts manifests in force, and nothing else.
func (w *world) store(t *testing.T, manifests ...string) {
	t.Helper()
	ctx, everything := t.Context(), metav1.ListOptions{}
	if err := w.client.ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, everything); err != nil {
		t.Fatal(err)
	}
	if err := w.client.ValidatingAdmissionPolicies().DeleteCollection(ctx, metav1.DeleteOptions{}, everything); err != nil {
		t.Fatal(err)
	}
	for _, manifest := range manifests {
		w.apply(t, manifest)
	}
	w.settle(t)
}

func (w *world) apply(t *testing.T, manifest string) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatalf("%v:\n%s", err, manifest)
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &head); err != nil {
		t.Fatal(err)
	}
	options := metav1.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict}
	if head.Kind == "ValidatingAdmissionPolicy" {
		_, err = w.client.ValidatingAdmissionPolicies().Patch(t.Context(), head.Name, types.ApplyPatchType, data, options)
	} else {
		_, err = w.client.ValidatingAdmissionPolicyBindings().Patch(t.Context(), head.Name, types.ApplyPatchType, data, options)
	}
	if err != nil {
		t.Fatalf("%v:\n%s", err, manifest)
	}
}

// settle waits until all that was written before is in force: a policy that is
// written last, with a binding that is, must be.
func (w *world) settle(t *testing.T) {
	t.Helper()
	w.marks++
	name := fmt.Sprintf("zz-mark-%d", w.marks)
	w.apply(t, policyManifest(name, `  matchConstraints: {resourceRules: [{apiGroups: [marks.example.com], apiVersions: [v1], operations: [CREATE], resources: [marks]}]}
  validations: [{expression: "object.metadata.name != '`+name+`'", message: `+name+"}]\n"))
	w.apply(t, bindingManifest(name, ""))
	request := map[string]any{
		"kind":     map[string]any{"group": "marks.example.com", "version": "v1", "kind": "Mark"},
		"resource": map[string]any{"group": "marks.example.com", "version": "v1", "resource": "marks"},
		"object":   map[string]any{"apiVersion": "marks.example.com/v1", "kind": "Mark", "metadata": map[string]any{"name": name}},
		"uid":      "mark", "operation": "CREATE", "name": name,
	}
	var last reply
	err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(context.Context) (bool, error) {
		last = w.review(t, review(t, request))
		return strings.Contains(strings.Join(last.causes, "\n"), name), nil
	})
	if err != nil {
		t.Fatalf("the policies are not in force: %v; last answer: %+v", err, last)
	}
}

func policyManifest(name, spec string) string {
	return "apiVersion: policy.portcullis.dev/v1alpha1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: " + name + "}\nspec:\n" + spec
}

func bindingManifest(name, spec string) string {
	if !strings.Contains(spec, "validationActions") {
		spec += "  validationActions: [Deny]\n"
	}
	return "apiVersion: policy.portcullis.dev/v1alpha1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: " + name + "}\nspec:\n  policyName: " + name + "\n" + spec
}

func review(t *testing.T, request map[string]any) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reply is what a caller of the review door gets.
type reply struct {
	http     int // 200 when there is a verdict
	allowed  bool
	code     int32
	message  string
	causes   []string
	warnings []string
	audited  map[string]string
}

// String is what docs/faults.md says.
func (r reply) String() string {
	switch {
	case r.http != http.StatusOK:
		return fmt.Sprintf("HTTP %d", r.http)
	case r.allowed && len(r.warnings) > 0:
		return "allowed, warned"
	case r.allowed && len(r.audited) > 0:
		return "allowed, audited"
	case r.allowed:
		return "allowed"
	}
	return fmt.Sprintf("denied (%d)", r.code)
}

func (w *world) review(t *testing.T, body []byte) reply {
	t.Helper()
	return w.post(t, w.http, apiserver.ReviewPath, bytes.NewReader(body))
}

func (w *world) post(t *testing.T, client *http.Client, path string, body io.Reader) reply {
	t.Helper()
	got, err := w.tryPost(t, client, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// postUntil asks again while an answer is cut off, or does not say what it should. None
// may be a verdict.
func (w *world) postUntil(t *testing.T, client *http.Client, path string, body []byte, sees string) reply {
	t.Helper()
	for range 1_000 {
		got, err := w.tryPost(t, client, path, bytes.NewReader(body))
		if err == nil && (got.http == http.StatusOK || strings.Contains(got.told(), sees)) {
			return got
		}
	}
	t.Fatalf("no answer says %q", sees)
	return reply{}
}

func (w *world) tryPost(t *testing.T, client *http.Client, path string, body io.Reader) (reply, error) {
	t.Helper()
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.Config.Host+path, body)
	if err != nil {
		t.Fatal(err)
	}
	post.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(post)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return reply{}, err
	}
	got := reply{http: answer.StatusCode}
	if answer.StatusCode != http.StatusOK {
		var status metav1.Status
		if err := json.Unmarshal(content, &status); err != nil {
			t.Fatalf("HTTP %d without a status: %s", answer.StatusCode, content)
		}
		got.message = status.Message
		return got, nil
	}
	var reviewed admissionv1.AdmissionReview
	if err := json.Unmarshal(content, &reviewed); err != nil || reviewed.Response == nil {
		t.Fatalf("no response in %s: %v", content, err)
	}
	got.allowed, got.warnings, got.audited = reviewed.Response.Allowed, reviewed.Response.Warnings, reviewed.Response.AuditAnnotations
	if result := reviewed.Response.Result; result != nil {
		got.code, got.message = result.Code, result.Message
		if result.Details != nil {
			for _, cause := range result.Details.Causes {
				got.causes = append(got.causes, cause.Message)
			}
		}
	}
	return got, nil
}
