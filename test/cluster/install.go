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
)

// local is what a machine without nodes and DNS needs to differ: the Service leads to
// the balancer, and no Pods are made.
const local = `apiVersion: kustomize.config.k8s.io/v1beta1
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
`

// Install applies the manifests, as Kustomization says.
func (c *Cluster) Install(ctx context.Context) error {
	dir, err := c.Kustomization()
	if err != nil {
		return err
	}
	command := c.Kubectl(ctx, c.AdminKubeconfig, "apply", "--server-side", "-k", dir)
	// kubectl remembers for hours which kinds there are, and the API group may not be served yet.
	command.Env = append(command.Env, "KUBECACHEDIR="+c.dir("install-cache"))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, output)
	}
	return nil
}

// Kustomization writes the folder that is applied: the manifests, with what has to
// differ on this machine.
func (c *Cluster) Kustomization() (dir string, err error) {
	kustomization, err := template.New("kustomization").Parse(local)
	if err != nil {
		return "", err
	}
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
	return dir, kustomization.Execute(file, map[string]any{"Manifests": relative, "Port": c.Balancer.Port()})
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
