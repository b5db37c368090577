// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package examples_test runs every folder of the examples as a test: their
// policies decode and are valid, each case gets the verdict that it wants, and
// what must be refused is refused. It knows the engine only through a server.
package examples_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

const quickstart = "quickstart"

// judgeFunc answers what the policies of an example make of the request of a case.
type judgeFunc func(t *testing.T, ex example, c testCase) v1alpha1.AdmissionPreviewStatus

func mustLoadExamples(t *testing.T) []example {
	t.Helper()
	examples, err := loadExamples(".")
	if err != nil {
		t.Fatal(err)
	}
	return examples
}

// Loading fails when a folder lacks its README.md or its policies.yaml.
func TestEveryExampleIsComplete(t *testing.T) {
	for _, ex := range mustLoadExamples(t) {
		t.Run(ex.name, func(t *testing.T) {
			if len(ex.policies) == 0 {
				t.Errorf("%s holds no policy", policiesFile)
			}
			checkCases(t, ex)
			for _, r := range ex.refusals {
				if r.want.Code == 0 || r.want.Message == "" {
					t.Errorf("%s%s.yaml wants no code or no message", refusedPrefix, r.name)
				}
			}
		})
	}
}

// checkCases: an example shows a request that is denied and one that is not, or, if it
// mutates, one that is changed and one that is not.
func checkCases(t *testing.T, ex example) {
	t.Helper()
	has := func(matches func(verdict) bool) bool {
		return slices.ContainsFunc(ex.cases, func(c testCase) bool { return matches(c.want) })
	}
	if mutates(t, ex) {
		if !has(func(want verdict) bool { return want.Object != nil }) {
			t.Error("has no case that changes the object")
		}
		if !has(func(want verdict) bool { return want.Allowed && want.Object == nil }) {
			t.Error("has no case that leaves the object as it is")
		}
	} else {
		if !has(func(want verdict) bool { return want.Allowed }) {
			t.Error("has no case that is allowed")
		}
		if !has(func(want verdict) bool { return !want.Allowed }) {
			t.Error("has no case that is denied")
		}
	}
	for _, c := range ex.cases {
		checkCase(t, c)
	}
}

func checkCase(t *testing.T, c testCase) {
	t.Helper()
	if c.request.Object == nil && c.request.OldObject == nil {
		t.Errorf("case %s has neither object nor oldObject", c.name)
	}
	hasResult := c.want.Code != 0 && c.want.Reason != "" && c.want.Message != ""
	wantsNoResult := c.want.Code == 0 && c.want.Reason == "" && c.want.Message == ""
	if !c.want.Allowed && !hasResult {
		t.Errorf("case %s is denied and lacks code, reason or message", c.name)
	}
	if c.want.Allowed && !wantsNoResult {
		t.Errorf("case %s is allowed and wants code, reason or message", c.name)
	}
	if c.want.Object == nil {
		return
	}
	if !c.want.Allowed || c.request.Object == nil {
		t.Errorf("case %s wants an object of a request that is denied or has none", c.name)
	} else if reflect.DeepEqual(decode(t, c.want.Object.Raw), decode(t, c.request.Object.Raw)) {
		t.Errorf("case %s wants the object of the request: leave it out", c.name)
	}
}

// A folder that lacks something must not load, or the tests would pass it over.
func TestIncompleteFoldersDoNotLoad(t *testing.T) {
	complete := map[string]string{
		readmeFile:        "# Example\n",
		policiesFile:      "kind: Any\n",
		"case-a.yaml":     "request: {operation: CREATE}\nwant: {allowed: true}\n",
		"refused-a.yaml":  "want: {code: 422, message: text}\n---\nkind: Any\n",
		"objects/ns.yaml": "kind: Any\n",
	}
	tests := []struct {
		name   string
		change func(files map[string]string)
		fails  bool
	}{
		{"complete", func(map[string]string) {}, false},
		{"without README", func(files map[string]string) { delete(files, readmeFile) }, true},
		{"without policies", func(files map[string]string) { delete(files, policiesFile) }, true},
		{"unknown field in a case", func(files map[string]string) { files["case-a.yaml"] = "requests: {}\n" }, true},
		{"unknown field of a request", func(files map[string]string) { files["case-a.yaml"] = "request: {operations: [CREATE]}\n" }, true},
		{"manifest that nothing reads", func(files map[string]string) { files["cases-a.yaml"] = "{}\n" }, true},
		{"refusal without its object", func(files map[string]string) { files["refused-a.yaml"] = "want: {code: 422}\n" }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := maps.Clone(complete)
			tt.change(files)
			root := t.TempDir()
			writeFile(t, filepath.Join(root, readmeFile), "# Examples\n")
			for name, content := range files {
				writeFile(t, filepath.Join(root, "example", name), content)
			}
			examples, err := loadExamples(root)
			if failed := err != nil; failed != tt.fails {
				t.Fatalf("loadExamples() error = %v, want an error: %v", err, tt.fails)
			}
			if !tt.fails && (len(examples) != 1 || len(examples[0].cases) != 1 || len(examples[0].refusals) != 1 || len(examples[0].cluster) != 1) {
				t.Errorf("loadExamples() = %+v, want one example with one case, refusal and object", examples)
			}
		})
	}
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The review and the preview of the quickstart ask about the same Deployment
// as its denied case, which shows what they are answered.
func TestQuickstartAsksOneQuestion(t *testing.T) {
	var review admissionv1.AdmissionReview
	unmarshalFile(t, filepath.Join(quickstart, "review.json"), &review)
	var reviewed appsv1.Deployment
	unmarshal(t, review.Request.Object.Raw, &reviewed)
	if review.Request.UID == "" || review.Request.Operation != admissionv1.Create {
		t.Errorf("review has uid %q and operation %q", review.Request.UID, review.Request.Operation)
	}

	var preview v1alpha1.AdmissionPreview
	unmarshalFile(t, filepath.Join(quickstart, previewFile), &preview)
	var previewed appsv1.Deployment
	unmarshal(t, preview.Spec.Request.Object.Raw, &previewed)

	c, err := loadCase("six-replicas", filepath.Join(quickstart, "case-six-replicas.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if c.want.Allowed || !bytes.Equal(compact(t, c.request.Object.Raw), compact(t, preview.Spec.Request.Object.Raw)) {
		t.Error("preview.yaml does not hold the object of case-six-replicas.yaml")
	}
	if reviewed.Name != previewed.Name || reviewed.Namespace != previewed.Namespace ||
		review.Request.Name != reviewed.Name || review.Request.Namespace != reviewed.Namespace ||
		*reviewed.Spec.Replicas != *previewed.Spec.Replicas {
		t.Error("review.json and preview.yaml hold different Deployments")
	}
}

func unmarshalFile(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unmarshal(t, data, into)
}

func unmarshal(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatal(err)
	}
}

func compact(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// runCases compares the verdict of every case with the one that it wants.
func runCases(t *testing.T, examples []example, judge judgeFunc) {
	t.Helper()
	for _, ex := range examples {
		t.Run(ex.name, func(t *testing.T) {
			for _, c := range ex.cases {
				t.Run(c.name, func(t *testing.T) {
					status := judge(t, ex, c)
					compare(t, status, c.want)
					compareObject(t, status, c)
				})
			}
		})
	}
}

func compare(t *testing.T, status v1alpha1.AdmissionPreviewStatus, want verdict) {
	t.Helper()
	if status.Allowed != want.Allowed {
		t.Errorf("allowed = %v, want %v; result: %+v", status.Allowed, want.Allowed, status.Result)
	}
	if !want.Allowed {
		if status.Result == nil {
			t.Fatal("a denial without a result")
		}
		if status.Result.Code != want.Code || status.Result.Reason != want.Reason {
			t.Errorf("code, reason = %d, %s, want %d, %s", status.Result.Code, status.Result.Reason, want.Code, want.Reason)
		}
		if status.Result.Message != want.Message {
			t.Errorf("message:\n got %s\nwant %s", status.Result.Message, want.Message)
		}
	}
	if !slices.Equal(status.Warnings, want.Warnings) {
		t.Errorf("warnings:\n got %q\nwant %q", status.Warnings, want.Warnings)
	}
	if !maps.Equal(status.AuditAnnotations, want.AuditAnnotations) {
		t.Errorf("audit annotations:\n got %q\nwant %q", status.AuditAnnotations, want.AuditAnnotations)
	}
}
