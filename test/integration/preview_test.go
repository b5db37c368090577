// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

func testPreview(t *testing.T, a *api) {
	status := a.preview(t, v1alpha1.AdmissionPreviewSpec{Request: &v1alpha1.PreviewRequest{Object: raw(deployment)}})
	if want := `deployments.apps "nginx" is forbidden: ` + demoDenial; status.Allowed || status.Result == nil || status.Result.Message != want {
		t.Errorf("got %+v, want the message\n%s", status.Result, want)
	}
	want := v1alpha1.Evaluation{
		Policy:  v1alpha1.PolicyReference{Kind: "ValidatingAdmissionPolicy", Name: demoPolicy},
		Binding: demoBinding, Phase: "Validate", Outcome: v1alpha1.OutcomeDenied,
		Rule: "validations[0]", Expression: "object.spec.replicas <= 5", Message: "failed expression: object.spec.replicas <= 5",
	}
	var found []v1alpha1.Evaluation
	for _, evaluation := range status.Evaluations {
		if evaluation.Cost <= 0 || evaluation.DurationMicroseconds < 0 {
			t.Errorf("got cost %d and %d microseconds, want some cost", evaluation.Cost, evaluation.DurationMicroseconds)
		}
		evaluation.Cost, evaluation.DurationMicroseconds = 0, 0
		found = append(found, evaluation)
	}
	want.Values = map[string]apiextensionsv1.JSON{"object.spec.replicas": {Raw: []byte("6")}}
	if diff := cmp.Diff([]v1alpha1.Evaluation{want}, found); diff != "" {
		t.Errorf("evaluations (-want +got):\n%s", diff)
	}
	if status.Object == nil || !bytes.Contains(status.Object.Raw, []byte(`"replicas":6`)) {
		t.Errorf("got object %+v, want that of the request", status.Object)
	}
}

// testPreviewCandidates lays candidates over the stored policies.
func testPreviewCandidates(t *testing.T, a *api) {
	lenient := newPolicy(demoPolicy)
	lenient.Spec.Validations[0].Expression = "object.spec.replicas <= 10"
	second := newPolicy("second")
	second.APIVersion = "admissionregistration.k8s.io/v1"
	second.Spec.Validations[0].Message = "second objects"
	tests := []struct {
		name       string
		stored     v1alpha1.StoredPolicies
		candidates []any
		want       string
	}{
		{name: "none", want: demoDenial},
		{name: "none, and stored ones ignored", stored: v1alpha1.IgnoreStoredPolicies},
		{name: "one shadows the stored", candidates: []any{lenient}},
		{name: "one without a binding", candidates: []any{second}, want: demoDenial},
		{
			name: "one with a binding, beside the stored", candidates: []any{second, newBinding("b", "second")},
			want: demoDenial + "\nValidatingAdmissionPolicy 'second' with binding 'b' denied request: second objects",
		},
		{
			name: "one with a binding, alone", stored: v1alpha1.IgnoreStoredPolicies, candidates: []any{second, newBinding("b", "second")},
			want: "ValidatingAdmissionPolicy 'second' with binding 'b' denied request: second objects",
		},
		{name: "one whose binding is stored and ignored", stored: v1alpha1.IgnoreStoredPolicies, candidates: []any{newPolicy(demoPolicy)}},
	}
	for _, test := range tests {
		spec := v1alpha1.AdmissionPreviewSpec{Request: &v1alpha1.PreviewRequest{Object: raw(deployment)}, StoredPolicies: test.stored}
		for _, candidate := range test.candidates {
			spec.Policies = append(spec.Policies, *raw(string(encode(t, candidate))))
		}
		status := a.preview(t, spec)
		var denials []string
		if status.Result != nil {
			for _, cause := range status.Result.Details.Causes {
				denials = append(denials, cause.Message)
			}
		}
		if got := strings.Join(denials, "\n"); got != test.want || status.Allowed != (test.want == "") {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
	if got := verdict(a.review(t, demoReview(t))); got != demoDenial {
		t.Errorf("after the previews the review door says %q", got)
	}
}

func testPreviewRefused(t *testing.T, a *api) {
	_, err := a.client.PolicyV1alpha1().AdmissionPreviews().Create(t.Context(), &v1alpha1.AdmissionPreview{}, metav1.CreateOptions{})
	wantReason(t, err, metav1.StatusReasonInvalid)
	for _, method := range []string{"GET", "PUT", "PATCH", "DELETE"} {
		if got := a.do(t, request{method: method, path: groupPath + "/admissionpreviews"}); got.code != http.StatusMethodNotAllowed {
			t.Errorf("%s: got code %d, want 405: %s", method, got.code, got.body)
		}
	}
}

func (a *api) preview(t *testing.T, spec v1alpha1.AdmissionPreviewSpec) v1alpha1.AdmissionPreviewStatus {
	t.Helper()
	answer, err := a.client.PolicyV1alpha1().AdmissionPreviews().Create(t.Context(), &v1alpha1.AdmissionPreview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status
}

func raw(object string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(object)} }

// testPreviewByKubectl uses the defaults of kubectl, which checks a manifest
// against the OpenAPI document of the server.
func testPreviewByKubectl(t *testing.T, a *api) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	file := filepath.Join(t.TempDir(), "preview.yaml")
	manifest := "apiVersion: policy.portcullis.dev/v1alpha1\nkind: AdmissionPreview\nspec:\n  request:\n    object: " + deployment + "\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), kubectl, "create", "-f", file, "-o", "yaml", "--kubeconfig", a.Kubeconfig)
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"status:\n  allowed: false\n", "  result:\n    code: 422\n", "outcome: Denied"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("kubectl prints\n%s\nwithout %q", out, want)
		}
	}
	if !strings.Contains(strings.Join(strings.Fields(string(out)), " "), "deployments.apps \"nginx\" is forbidden: ") {
		t.Errorf("kubectl prints\n%s\nwithout the message", out)
	}
}
