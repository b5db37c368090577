// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package deploy_test installs, operates and removes Portcullis as docs/install.md,
// docs/emergency.md and docs/uninstall.md say.
package deploy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/cluster/clustertest"
	"github.com/portcullis-dev/portcullis/test/controlplane"
)

// shared is the cluster of the tests that leave it as they found it.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(clustertest.Main(m, func(c *cluster.Cluster) { shared = c }))
}

// patience is how long anything may take on a busy machine before it counts as stuck.
const patience = 2 * time.Minute

// kubectl runs kubectl as the administrator, with input as its standard input, and
// returns what it says and whether it failed. It remembers nothing of what kubectl has
// found in the cluster before, and can be used when a test is over, to clean up.
func kubectl(t *testing.T, c *controlplane.ControlPlane, input string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	command := c.Kubectl(ctx, c.AdminKubeconfig, args...)
	command.Env = append(command.Env, "KUBECACHEDIR="+t.TempDir())
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	return string(output), err
}

// must runs kubectl, which must succeed.
func must(t *testing.T, c *controlplane.ControlPlane, input string, args ...string) string {
	t.Helper()
	output, err := kubectl(t, c, input, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

// eventually waits until problem returns none.
func eventually(t *testing.T, what string, problem func() string) {
	t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = problem()
		return last == "", nil
	})
	if err != nil {
		t.Fatalf("waited in vain until %s: %s", what, last)
	}
}

// manifests is a folder of artifacts/deploy.
func manifests(t *testing.T, name string) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "artifacts", "deploy", name)
}

// kustomization writes a folder with a kustomization of artifacts/deploy, with
// components and what else it says, and files beside it.
func kustomization(t *testing.T, more string, files map[string]string, components ...string) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	relative := func(name string) string {
		path, err := filepath.Rel(dir, manifests(t, name))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	content := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- " + relative("") + "\n"
	if len(components) > 0 {
		content += "components:\n"
	}
	for _, component := range components {
		content += "- " + relative(filepath.Join("components", component)) + "\n"
	}
	if files == nil {
		files = map[string]string{}
	}
	files["kustomization.yaml"] = content + more
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
