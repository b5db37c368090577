// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

const (
	// availableTimeout is how long kube-apiserver may take to find the API group on a
	// busy machine.
	availableTimeout = 2 * time.Minute
	availablePeriod  = 50 * time.Millisecond
)

var groupVersion = schema.GroupVersion{Group: "policy.portcullis.dev", Version: "v1alpha1"}

// WaitAvailable waits until kube-apiserver forwards requests to the API group.
func (c *Cluster) WaitAvailable(ctx context.Context) error {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	services := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	err = await(ctx, func(ctx context.Context) error {
		found, err := services.Get(ctx, APIService, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return available(found)
	})
	if err != nil {
		return fmt.Errorf("APIService %s: %w", APIService, err)
	}
	return nil
}

// waitDiscovered waits until kubectl finds the API group and its schemas. kube-apiserver
// gathers them a moment after it has found the API group available.
func (c *Cluster) waitDiscovered(ctx context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return err
	}
	err = await(ctx, func(context.Context) error { return discovered(client) })
	if err != nil {
		return fmt.Errorf("discovery of %s: %w", groupVersion, err)
	}
	return nil
}

func discovered(client *discovery.DiscoveryClient) error {
	_, resources, failed, err := client.GroupsAndMaybeResources()
	switch {
	case err != nil:
		return err
	case failed[groupVersion] != nil:
		return failed[groupVersion]
	case resources[groupVersion] == nil:
		return errors.New("it is not among the API groups")
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	if paths["apis/"+groupVersion.String()] == nil {
		return errors.New("it is not among the schemas")
	}
	return nil
}

// await calls check until it returns nil. Its error is the last of check.
func await(ctx context.Context, check func(context.Context) error) error {
	last := errors.New("nobody has looked")
	err := wait.PollUntilContextTimeout(ctx, availablePeriod, availableTimeout, true, func(ctx context.Context) (bool, error) {
		if problem := check(ctx); problem == nil || ctx.Err() == nil {
			last = problem // what was wrong while there was time
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

func available(service *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(service.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, entry := range conditions {
		condition, ok := entry.(map[string]any)
		if !ok || condition["type"] != "Available" {
			continue
		}
		if condition["status"] == "True" {
			return nil
		}
		return fmt.Errorf("%v: %v", condition["reason"], condition["message"])
	}
	return errors.New("it has no condition Available")
}
