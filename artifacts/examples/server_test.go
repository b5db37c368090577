// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// One server answers for all examples: previews and dry runs leave nothing
// behind, and the quickstart, which does, is the last.
func TestServer(t *testing.T) {
	config := harness.Start(t, harness.WithObjects(filepath.Join(quickstart, objectsFolder))).Config
	examples := mustLoadExamples(t)
	t.Run("cases", func(t *testing.T) { runCases(t, examples, previewJudge(t, config)) })
	dryRun := newWriter(t, config, metav1.DryRunAll)
	t.Run("policies", func(t *testing.T) { testPoliciesAreAccepted(t, examples, dryRun) })
	t.Run("refused", func(t *testing.T) { testRefusals(t, examples, dryRun) })
	t.Run(quickstart, func(t *testing.T) { testQuickstart(t, config) })
}

// previewJudge judges by a preview with nothing but the example.
func previewJudge(t *testing.T, config *rest.Config) judgeFunc {
	t.Helper()
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	previews := client.PolicyV1alpha1().AdmissionPreviews()
	return func(t *testing.T, ex example, c testCase) v1alpha1.AdmissionPreviewStatus {
		t.Helper()
		answer, err := previews.Create(t.Context(), &v1alpha1.AdmissionPreview{
			Spec: v1alpha1.AdmissionPreviewSpec{
				Request:        &c.request,
				Policies:       ex.policies,
				StoredPolicies: v1alpha1.IgnoreStoredPolicies,
				Cluster:        ex.cluster,
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status
	}
}

func testPoliciesAreAccepted(t *testing.T, examples []example, write writer) {
	t.Helper()
	for _, ex := range examples {
		t.Run(ex.name, func(t *testing.T) {
			for i, raw := range ex.policies {
				if err := write(t.Context(), raw.Raw); err != nil {
					t.Errorf("%s, document %d: %v", policiesFile, i+1, err)
				}
			}
		})
	}
}

func testRefusals(t *testing.T, examples []example, write writer) {
	t.Helper()
	for _, ex := range examples {
		for _, r := range ex.refusals {
			t.Run(ex.name+"/"+r.name, func(t *testing.T) {
				var status apierrors.APIStatus
				if err := write(t.Context(), r.object); !errors.As(err, &status) {
					t.Fatalf("write ended with %v, want a status", err)
				}
				if code := status.Status().Code; code != r.want.Code {
					t.Errorf("code = %d, want %d", code, r.want.Code)
				}
				if message := status.Status().Message; !strings.Contains(message, r.want.Message) {
					t.Errorf("refused with:\n%s\nwant:\n%s", message, r.want.Message)
				}
			})
		}
	}
}

// writer asks the server to create an object of our group, given as JSON, with
// strict field validation.
type writer func(ctx context.Context, object []byte) error

func newWriter(t *testing.T, config *rest.Config, dryRun ...string) writer {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	options := metav1.CreateOptions{DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict}
	return func(ctx context.Context, object []byte) error {
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(object); err != nil {
			return err
		}
		resource, err := resourceOf(u.GetKind())
		if err != nil {
			return err
		}
		_, err = client.Resource(resource).Create(ctx, &u, options)
		return err
	}
}

func resourceOf(kind string) (schema.GroupVersionResource, error) {
	switch kind {
	case "ValidatingAdmissionPolicy":
		return v1alpha1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"), nil
	case "ValidatingAdmissionPolicyBinding":
		return v1alpha1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"), nil
	case clusterPolicyKind:
		return v1alpha1.SchemeGroupVersion.WithResource("clusterpolicies"), nil
	default:
		return schema.GroupVersionResource{}, fmt.Errorf("no resource for kind %q", kind)
	}
}
