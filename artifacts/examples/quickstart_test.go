// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
)

const (
	inForceTimeout = 10 * time.Second
	inForcePoll    = 10 * time.Millisecond
)

// The quickstart is what a newcomer does: store its policies in a server that
// has its objects, send its preview, post its review.
func testQuickstart(t *testing.T, config *rest.Config) {
	t.Helper()
	policies, err := readObjects(filepath.Join(quickstart, policiesFile))
	if err != nil {
		t.Fatal(err)
	}
	write := newWriter(t, config)
	for _, object := range policies {
		if err := write(t.Context(), object.Raw); err != nil {
			t.Fatal(err)
		}
	}
	denied, err := loadCase("six-replicas", filepath.Join(quickstart, "case-six-replicas.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, previewQuickstart(t, config), denied.want)

	response, err := postReview(t.Context(), config, filepath.Join(quickstart, "review.json"))
	if err != nil {
		t.Fatal(err)
	}
	if response.Allowed || response.Result == nil {
		t.Fatalf("review answered with %+v, want a denial", response)
	}
	// kube-apiserver puts the text before the policy's own there itself.
	_, inner, _ := strings.Cut(denied.want.Message, " is forbidden: ")
	if response.Result.Message != inner || response.Result.Code != denied.want.Code {
		t.Errorf("review denied with %d, %s, want %d, %s", response.Result.Code, response.Result.Message, denied.want.Code, inner)
	}
}

// previewQuickstart sends the preview until the stored policies are in force.
func previewQuickstart(t *testing.T, config *rest.Config) v1alpha1.AdmissionPreviewStatus {
	t.Helper()
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var preview v1alpha1.AdmissionPreview
	unmarshalFile(t, filepath.Join(quickstart, previewFile), &preview)
	var status v1alpha1.AdmissionPreviewStatus
	err = wait.PollUntilContextTimeout(t.Context(), inForcePoll, inForceTimeout, true, func(ctx context.Context) (bool, error) {
		answer, err := client.PolicyV1alpha1().AdmissionPreviews().Create(ctx, &preview, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		status = answer.Status
		return !status.Allowed, nil
	})
	if err != nil {
		t.Fatalf("the preview is not denied: %v", err)
	}
	return status
}

func postReview(ctx context.Context, config *rest.Config, file string) (*admissionv1.AdmissionResponse, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, config.Host+apiserver.ReviewPath, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var sent, review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &sent); err != nil {
		return nil, err
	}
	if err := json.NewDecoder(answer.Body).Decode(&review); err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK || review.Response == nil || review.Response.UID != sent.Request.UID {
		return nil, fmt.Errorf("answered with status %d and %+v", answer.StatusCode, review.Response)
	}
	return review.Response, nil
}
