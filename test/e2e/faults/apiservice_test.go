// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

func (s *scene) apiService() (*unstructured.Unstructured, error) {
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		return nil, err
	}
	services := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	return services.Get(s.Context(), cluster.APIService, metav1.GetOptions{})
}

// generation counts the changes of what the APIService is to be.
func (s *scene) generation() int64 {
	s.Helper()
	found, err := s.apiService()
	if err != nil {
		s.Fatal(err)
	}
	return found.GetGeneration()
}

// available is an error when kube-apiserver does not forward requests.
func (s *scene) available() error {
	found, err := s.apiService()
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(found.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, entry := range conditions {
		if condition, ok := entry.(map[string]any); ok && condition["type"] == "Available" {
			if condition["status"] == "True" {
				return nil
			}
			return fmt.Errorf("the APIService is not available: %v: %v", condition["reason"], condition["message"])
		}
	}
	return errors.New("the APIService has no condition Available")
}
