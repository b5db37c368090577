// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	// reviewPath is where kube-apiserver would send its reviews.
	reviewPath = "/admission/v1/validate"

	// inForceTimeout is how long a stored policy may take to come into force.
	inForceTimeout = 10 * time.Second
	inForcePoll    = 10 * time.Millisecond
)

// showVerdict has the review of file judged and prints the question and the
// answer. An admission is an error: the example is about a denial.
func showVerdict(ctx context.Context, config *rest.Config, file string, out io.Writer) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	question, err := describe(body)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	answer, err := awaitDenial(ctx, config, body)
	if err != nil {
		return fmt.Errorf("judge %s: %w", file, err)
	}
	fmt.Fprintf(out, "\n%s (%s)\nPOST %s%s\n\n", question, file, config.Host, reviewPath)
	fmt.Fprintf(out, "  allowed: %t\n", answer.Allowed)
	fmt.Fprintf(out, "  code:    %d %s\n", answer.Result.Code, answer.Result.Reason)
	fmt.Fprintf(out, "  message: %s\n", answer.Result.Message)
	return nil
}

// describe says in a sentence what the review asks.
func describe(body []byte) (string, error) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return "", err
	}
	if review.Request == nil {
		return "", errors.New("holds no request")
	}
	var deployment appsv1.Deployment
	if err := json.Unmarshal(review.Request.Object.Raw, &deployment); err != nil {
		return "", fmt.Errorf("request.object: %w", err)
	}
	if deployment.Spec.Replicas == nil {
		return "", errors.New("request.object has no spec.replicas")
	}
	return fmt.Sprintf("May %s %s %s %s with %d replicas in namespace %s?",
		review.Request.UserInfo.Username, review.Request.Operation, review.Request.Kind.Kind,
		review.Request.Name, *deployment.Spec.Replicas, review.Request.Namespace), nil
}

// awaitDenial posts the review until the policies just stored are in force.
func awaitDenial(ctx context.Context, config *rest.Config, body []byte) (*admissionv1.AdmissionResponse, error) {
	client, err := reviewClient(config)
	if err != nil {
		return nil, err
	}
	var answer *admissionv1.AdmissionResponse
	err = wait.PollUntilContextTimeout(ctx, inForcePoll, inForceTimeout, true, func(ctx context.Context) (bool, error) {
		answer, err = post(ctx, client, body)
		return err == nil && !answer.Allowed, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("still allowed %s after the policies were stored: %w", inForceTimeout, err)
	}
	return answer, err
}

// reviewClient is the administrator's, for paths outside the API groups.
func reviewClient(config *rest.Config) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme.Scheme).WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

func post(ctx context.Context, client rest.Interface, body []byte) (*admissionv1.AdmissionResponse, error) {
	raw, err := client.Post().AbsPath(reviewPath).SetHeader("Content-Type", "application/json").Body(body).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(raw, &review); err != nil {
		return nil, err
	}
	if review.Response == nil || !review.Response.Allowed && review.Response.Result == nil {
		return nil, fmt.Errorf("the answer is not a review: %s", raw)
	}
	return review.Response, nil
}
