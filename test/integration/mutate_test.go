// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// mutateRule is the spec of a policy with one rule that applies a JSON patch to
// ConfigMaps of a namespace.
func mutateRule(namespace, patch string) string {
	return "rules:\n" + nextRule("change", namespace, "", patch)
}

// nextRule is one more rule: for ConfigMaps of a namespace, with more to match, or if the
// namespace is empty for what is to match alone.
func nextRule(name, namespace, matched, patch string) string {
	if namespace != "" {
		matched = fmt.Sprintf("kinds: [ConfigMap], namespaces: [%s], %s", namespace, matched)
	}
	return fmt.Sprintf("- name: %s\n  match: {any: [{resources: {%s}}]}\n  mutate: {patchesJson6902: %q}\n", name, matched, patch)
}

// labelPatch sets a label.
func labelPatch(label, value string) string {
	return fmt.Sprintf("- {op: add, path: /metadata/labels/%s, value: %q}", label, value)
}

// storeRules stores ClusterPolicies by their names and waits until they are in force.
func (a *api) storeRules(t *testing.T, specs map[string]string) {
	t.Helper()
	for name, spec := range specs {
		a.createClusterPolicy(t, name, spec)
	}
	for name := range specs {
		a.awaitRules(t, name, 1)
	}
}

// awaitRules waits until a generation of a ClusterPolicy is in force.
func (a *api) awaitRules(t *testing.T, name string, generation int64) {
	t.Helper()
	a.awaitStatus(t, name, generation, func(ctx context.Context) (v1alpha1.PolicyStatus, error) {
		p, err := a.clusterPolicies().Get(ctx, name, metav1.GetOptions{})
		return p.Status, err
	})
}

func (a *api) awaitStatus(t *testing.T, name string, generation int64, read func(context.Context) (v1alpha1.PolicyStatus, error)) {
	t.Helper()
	var got v1alpha1.PolicyStatus
	err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		got, err = read(ctx)
		ready := meta.FindStatusCondition(got.Conditions, "Ready")
		return err == nil && ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == generation, err
	})
	if err != nil {
		t.Fatalf("%s is not in force: %v: its status stays %+v", name, err, got)
	}
}

// awaitPatched waits until the mutating door makes of an object what is wanted.
func (a *api) awaitPatched(t *testing.T, object, want string) {
	t.Helper()
	var got any
	err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(context.Context) (bool, error) {
		got = patched(t, a.changes(t, mutating.direct, mutateReview(t, admissionv1.Create, object)), object)
		return cmp.Equal(got, decoded(t, want)), nil
	})
	if err != nil {
		t.Fatalf("the object (-want +stays):\n%s", cmp.Diff(decoded(t, want), got))
	}
}

// configMapOf is a ConfigMap as JSON, with metadata and more as YAML flow.
func configMapOf(t *testing.T, namespace, name, labels string) string {
	t.Helper()
	manifest := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, labels: {%s}}}", name, namespace, labels)
	encoded, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// mutateReview is a review of an operation on a ConfigMap. Of a DELETE, the object is
// the old one; of an UPDATE, it is both.
func mutateReview(t *testing.T, operation admissionv1.Operation, object string) *admissionv1.AdmissionReview {
	t.Helper()
	var metadata struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(object), &metadata); err != nil {
		t.Fatal(err)
	}
	review := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       reviewUID,
			Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Name:      metadata.Name,
			Namespace: metadata.Namespace,
			Operation: operation,
		},
	}
	if operation != admissionv1.Delete {
		review.Request.Object = runtime.RawExtension{Raw: []byte(object)}
	}
	if operation != admissionv1.Create {
		review.Request.OldObject = runtime.RawExtension{Raw: []byte(object)}
	}
	return review
}

// changes posts a review to a door, which must answer it.
func (a *api) changes(t *testing.T, path string, review *admissionv1.AdmissionReview) *admissionv1.AdmissionResponse {
	t.Helper()
	answer := a.ask(t, path, encode(t, review))
	var got admissionv1.AdmissionReview
	if answer.code != http.StatusOK {
		t.Fatalf("%s answers %d: %s", path, answer.code, answer.body)
	}
	answer.decode(t, &got)
	if got.Response == nil || got.Response.UID != review.Request.UID || got.Response.UID == types.UID("") {
		t.Fatalf("%s answers %s, want a response with the uid of the request", path, answer.body)
	}
	return got.Response
}

// patched applies the patch of a response as an API server does, strictly.
func patched(t *testing.T, response *admissionv1.AdmissionResponse, object string) any {
	t.Helper()
	if !response.Allowed {
		t.Fatalf("denied: %+v", response.Result)
	}
	if response.Patch == nil {
		if response.PatchType != nil {
			t.Errorf("patch type %s without a patch", *response.PatchType)
		}
		return decoded(t, object)
	}
	if response.PatchType == nil || *response.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Errorf("patch type %v, want JSONPatch", response.PatchType)
	}
	return applyStrictly(t, response.Patch, object)
}

func applyStrictly(t *testing.T, changes []byte, object string) any {
	t.Helper()
	patch, err := jsonpatch.DecodePatch(changes)
	if err != nil {
		t.Fatal(err)
	}
	if len(patch) == 0 {
		t.Errorf("an empty patch: %s", changes)
	}
	result, err := patch.Apply([]byte(object))
	if err != nil {
		t.Fatalf("%v: %s does not apply to %s", err, changes, object)
	}
	return decoded(t, string(result))
}

// decoded tells whole numbers from others.
func decoded(t *testing.T, object string) any {
	t.Helper()
	var into any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(object), &into); err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	return into
}

func wantObject(t *testing.T, got any, want string) {
	t.Helper()
	if diff := cmp.Diff(decoded(t, want), got); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}
