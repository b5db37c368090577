// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// previewOf asks what would become of an object that is created.
func previewOf(t *testing.T, object runtime.Object) *v1alpha1.AdmissionPreview {
	t.Helper()
	return &v1alpha1.AdmissionPreview{Spec: v1alpha1.AdmissionPreviewSpec{Request: &v1alpha1.PreviewRequest{Object: raw(t, object)}}}
}

func raw(t *testing.T, object any) *runtime.RawExtension {
	t.Helper()
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: encoded}
}

func preview(ctx context.Context, p *person, question *v1alpha1.AdmissionPreview) (*v1alpha1.AdmissionPreviewStatus, error) {
	answer, err := p.ours.PolicyV1alpha1().AdmissionPreviews().Create(ctx, question, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &answer.Status, nil
}

// everywhere makes an object that policies are about by a dry run, has all replicas
// preview that, and finds a fault in whatever is not expected.
func everywhere(t *testing.T, all []*person, namespace, name, expected string) error {
	t.Helper()
	if err := want(try(t.Context(), admin, namespace, name), expected); err != nil {
		return err
	}
	for i, replica := range all {
		answer, err := preview(t.Context(), replica, previewOf(t, judged(namespace, name)))
		if err != nil {
			return err
		}
		got := ""
		if !answer.Allowed {
			got = strings.TrimPrefix(answer.Result.Message, fmt.Sprintf("configmaps %q is forbidden: ", name))
		}
		if err := want(got, expected); err != nil {
			return fmt.Errorf("replica %d: %w", i, err)
		}
	}
	return nil
}
