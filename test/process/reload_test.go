// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	typedv1alpha1 "github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned/typed/policy/v1alpha1"
)

// TestObjectsAreReloaded changes, breaks, mends and removes the files of
// --objects while the server serves.
func TestObjectsAreReloaded(t *testing.T) {
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: test, labels: {limited: %q}}\n"
	objects := filepath.Join(t.TempDir(), "objects")
	file := filepath.Join(objects, "namespace.yaml")
	write := func(content string) {
		t.Helper()
		if err := os.MkdirAll(objects, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintf(namespace, "yes"))
	s := launch(t, filepath.Join(t.TempDir(), "data"), "--secure-port=0", "--objects="+objects)
	s.waitReady(t)
	api := s.client(t).PolicyV1alpha1()
	storeLimit(t, api)
	denied := func() bool { return !allows(t, api) }
	allowed := func() bool { return allows(t, api) }
	waitFor(t, "a denial", denied)

	write(fmt.Sprintf(namespace, "no"))
	waitFor(t, "the label to count", allowed)
	write(fmt.Sprintf(namespace, "yes"))
	waitFor(t, "the label to count again", denied)

	write(fmt.Sprintf(namespace, "no") + "---\nkind: [\n")
	fault := file + ": document 2, line 5: broken YAML"
	said := func() int { return strings.Count(s.stderr.String(), fault) }
	waitFor(t, "the fault on stderr", func() bool { return said() > 0 })
	if allowed() {
		t.Error("a broken file is in force")
	}
	write(fmt.Sprintf(namespace, "no"))
	waitFor(t, "the mended file to count", allowed)
	if got := said(); got != 1 {
		t.Errorf("the fault was said %d times, want once", got)
	}

	if err := os.Rename(objects, objects+"-away"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the absent directory on stderr", func() bool {
		return strings.Contains(s.stderr.String(), objects+": no such file or directory")
	})
	if denied() {
		t.Error("the objects are gone with their directory")
	}
	write(fmt.Sprintf(namespace, "yes"))
	waitFor(t, "the new directory to count", denied)
	s.terminate(t)
}

// storeLimit stores a policy that denies Deployments in limited namespaces.
func storeLimit(t *testing.T, api typedv1alpha1.PolicyV1alpha1Interface) {
	t.Helper()
	policy := newPolicy("limit")
	policy.Spec.Validations[0].Expression = "namespaceObject.metadata.labels.limited != 'yes'"
	if _, err := api.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &v1alpha1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "limit"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        "limit",
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// allows previews a Deployment.
func allows(t *testing.T, api typedv1alpha1.PolicyV1alpha1Interface) bool {
	t.Helper()
	object := []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"nginx","namespace":"test"}}`)
	question := &v1alpha1.AdmissionPreview{Spec: v1alpha1.AdmissionPreviewSpec{
		Request: &v1alpha1.PreviewRequest{Object: &runtime.RawExtension{Raw: object}},
	}}
	answer, err := api.AdmissionPreviews().Create(t.Context(), question, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}
