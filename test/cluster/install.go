// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// availableTimeout is how long kube-apiserver may take to find the API group. It
// looks again after up to half a minute.
const availableTimeout = 2 * time.Minute

// local is what a machine without nodes and DNS needs to differ: the Service leads to
// the balancer, and no Pods are made.
var local = template.Must(template.New("kustomization").Parse(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- {{.Manifests}}
patches:
- target: {kind: Service, name: portcullis}
  patch: |
    - {op: replace, path: /spec, value: {type: ExternalName, externalName: localhost}}
- target: {kind: APIService}
  patch: |
    - {op: replace, path: /spec/service/port, value: {{.Port}}}
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/replicas, value: 0}
- target: {kind: StatefulSet}
  patch: |
    - {op: replace, path: /spec/replicas, value: 0}
`))

// Install applies the manifests, as Kustomization says.
func (c *Cluster) Install(ctx context.Context) error {
	dir, err := c.Kustomization()
	if err != nil {
		return err
	}
	_, err = c.Run(ctx, c.AdminKubeconfig, "apply", "--server-side", "-k", dir)
	return err
}

// Kustomization writes the folder that is applied: the manifests, with what has to
// differ on this machine.
func (c *Cluster) Kustomization() (dir string, err error) {
	dir = c.dir("install")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	manifests, err := filepath.Abs(c.options.Manifests)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(dir, manifests)
	if err != nil {
		return "", err
	}
	file, err := os.Create(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return dir, local.Execute(file, map[string]any{"Manifests": relative, "Port": c.Balancer.Port()})
}

// Run runs kubectl as the user of a kubeconfig and returns what it says. When it
// fails, the error has that too.
func (c *Cluster) Run(ctx context.Context, kubeconfig string, args ...string) (string, error) {
	output, err := c.Kubectl(ctx, kubeconfig, args...).CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// WaitAvailable waits until kube-apiserver forwards requests to the API group.
func (c *Cluster) WaitAvailable(ctx context.Context) error {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	services := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	last := errors.New("it has not been looked at")
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, availableTimeout, true, func(ctx context.Context) (bool, error) {
		var found *unstructured.Unstructured
		if found, last = services.Get(ctx, APIService, metav1.GetOptions{}); last != nil {
			return false, nil
		}
		last = available(found)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("APIService %s: %w: %w", APIService, err, last)
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
