// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func testDryRun(t *testing.T, a *api) {
	all := []string{metav1.DryRunAll}
	if _, err := a.policies().Create(t.Context(), newPolicy("p"), metav1.CreateOptions{DryRun: all}); err != nil {
		t.Fatal(err)
	}
	_, err := a.policies().Get(t.Context(), "p", metav1.GetOptions{})
	wantReason(t, err, metav1.StatusReasonNotFound)

	invalid := newPolicy("p")
	invalid.Spec.Validations = nil
	_, err = a.policies().Create(t.Context(), invalid, metav1.CreateOptions{DryRun: all})
	wantReason(t, err, metav1.StatusReasonInvalid)

	stored := a.createPolicy(t, newPolicy("p"))
	changed := stored.DeepCopy()
	changed.Spec.Validations[0].Message = "changed"
	answer, err := a.policies().Update(t.Context(), changed, metav1.UpdateOptions{DryRun: all})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Spec.Validations[0].Message != "changed" || answer.Generation != 2 {
		t.Errorf("dry update answers %+v, want what would be stored", answer)
	}
	patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	if _, err := a.policies().Patch(t.Context(), "p", types.MergePatchType, patch, metav1.PatchOptions{DryRun: all}); err != nil {
		t.Fatal(err)
	}
	if err := a.policies().Delete(t.Context(), "p", metav1.DeleteOptions{DryRun: all}); err != nil {
		t.Fatal(err)
	}
	if err := a.policies().DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: all}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := a.getPolicy(t, "p"); got.ResourceVersion != stored.ResourceVersion {
		t.Errorf("dry runs have changed the object: %+v", got)
	}
}

// testFieldValidation sends a field that does not exist and one that is given
// twice.
func testFieldValidation(t *testing.T, a *api) {
	manifest := func(name string) []byte {
		valid := string(encode(t, newPolicy(name)))
		unknown := strings.Replace(valid, `"validations":`, `"validation":[],"validations":`, 1)
		return []byte(strings.Replace(unknown, `"message":"too many"`, `"message":"first","message":"too many"`, 1))
	}
	const (
		unknown   = `unknown field "spec.validation"`
		duplicate = `duplicate field "spec.validations[0].message"`
	)
	strict := a.do(t, request{method: "POST", path: policiesPath + "?fieldValidation=Strict", body: manifest("strict")})
	if strict.code != 400 || !strings.Contains(string(strict.body), escaped(unknown)) || !strings.Contains(string(strict.body), escaped(duplicate)) {
		t.Errorf("Strict answers %d: %s", strict.code, strict.body)
	}
	for name, path := range map[string]string{"warn": policiesPath + "?fieldValidation=Warn", "absent": policiesPath} {
		warn := a.do(t, request{method: "POST", path: path, body: manifest(name)})
		warnings := strings.Join(warn.header.Values("Warning"), "\n")
		if warn.code != 201 || !strings.Contains(warnings, escaped(unknown)) || !strings.Contains(warnings, escaped(duplicate)) {
			t.Errorf("%s answers %d with warnings %s: %s", name, warn.code, warnings, warn.body)
		}
	}
	ignore := a.do(t, request{method: "POST", path: policiesPath + "?fieldValidation=Ignore", body: manifest("ignore")})
	if ignore.code != 201 || len(ignore.header.Values("Warning")) != 0 {
		t.Errorf("Ignore answers %d with warnings %v: %s", ignore.code, ignore.header.Values("Warning"), ignore.body)
	}

	patch := request{
		method: "PATCH", path: policiesPath + "/ignore?fieldValidation=Strict",
		contentType: string(types.MergePatchType), body: []byte(`{"spec":{"validation":[]}}`),
	}
	if got := a.do(t, patch); got.code != 422 || !strings.Contains(string(got.body), escaped(unknown)) {
		t.Errorf("strict patch answers %d: %s", got.code, got.body)
	}
	// The generic server answers an apply with an unknown field so, whatever
	// fieldValidation says.
	patch.path = policiesPath + "/ignore?fieldValidation=Strict&fieldManager=m"
	patch.contentType = string(types.ApplyYAMLPatchType)
	patch.body = []byte(`{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"ValidatingAdmissionPolicy","spec":{"validation":[]}}`)
	if got := a.do(t, patch); got.code != 500 || !strings.Contains(string(got.body), ".spec.validation") {
		t.Errorf("strict apply answers %d: %s", got.code, got.body)
	}
}

// escaped is how a text with quotes looks in JSON and in a Warning header.
func escaped(text string) string { return strings.ReplaceAll(text, `"`, `\"`) }
