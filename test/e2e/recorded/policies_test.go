// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package recorded

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"
)

var (
	ourVersion = schema.GroupVersion{Group: "policy.portcullis.dev", Version: "v1alpha1"}
	policies   = ourVersion.WithResource("validatingadmissionpolicies")
	resourceOf = map[string]schema.GroupVersionResource{
		policyKind: policies, bindingKind: ourVersion.WithResource("validatingadmissionpolicybindings"),
	}
)

// legislate stores the policies, with one line changed, and waits until they are in force.
func (w *world) legislate(t *testing.T, recordings []*recording) {
	t.Helper()
	for _, kind := range []string{bindingKind, policyKind} { // then a policy that is ready is bound
		each(recordings, func(one *recording) {
			for _, policy := range one.policies(kind) {
				if _, err := store(t.Context(), w.objects, policy); err != nil {
					t.Errorf("%s: %v", one.Name, err)
				}
			}
		})
	}
	stored := w.objects.Resource(policies)
	eventually(t, "all policies are in force", func(ctx context.Context) error {
		list, err := stored.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := ready(&list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// store writes a policy or binding of Kubernetes as one of ours.
func store(ctx context.Context, client dynamic.Interface, policy unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ours := policy.DeepCopy()
	ours.SetAPIVersion(ourVersion.String())
	return client.Resource(resourceOf[policy.GetKind()]).Create(ctx, ours, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
}

// author is the client of one who writes the policies of a recording.
func (w *world) author(one *recording) (dynamic.Interface, error) {
	if len(one.PolicyUser) == 0 {
		return w.objects, nil
	}
	var user authenticationv1.UserInfo
	if err := json.Unmarshal(one.PolicyUser, &user); err != nil {
		if err := json.Unmarshal(one.PolicyUser, &user.Username); err != nil {
			return nil, err
		}
	}
	return dynamic.NewForConfig(w.as(user))
}

func ready(policy *unstructured.Unstructured) error {
	status := struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(policy.Object, &status); err != nil {
		return err
	}
	condition := meta.FindStatusCondition(status.Status.Conditions, "Ready")
	if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != policy.GetGeneration() {
		return fmt.Errorf("%s: %+v", policy.GetName(), condition)
	}
	return nil
}
