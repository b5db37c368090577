// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/controlplane"
)

// commands are those of a document, each as it stands in a block for the shell.
func commands(t *testing.T, document string) []string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", document))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	rest := string(text)
	for {
		_, after, found := strings.Cut(rest, "```sh\n")
		if !found {
			return all
		}
		block, after, found := strings.Cut(after, "```")
		if !found {
			t.Fatalf("%s: a block without an end", document)
		}
		all, rest = append(all, block), after
	}
}

// command is the one of a document that has all of these.
func command(t *testing.T, document string, parts ...string) string {
	t.Helper()
	var found []string
	for _, block := range commands(t, document) {
		has := true
		for _, part := range parts {
			has = has && strings.Contains(block, part)
		}
		if has {
			found = append(found, block)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d commands with %q, want one", document, len(found), parts)
	}
	return found[0]
}

// shell runs a command as a user with a kubeconfig does, in the folder of the
// repository, and returns what it says.
func shell(t *testing.T, c *controlplane.ControlPlane, kubeconfig, command string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	template := c.Kubectl(ctx, kubeconfig)
	run := *template
	run.Path, run.Args = "/bin/sh", []string{"sh", "-ec", command}
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	run.Dir = root
	run.Env = append(run.Env, "KUBECACHEDIR="+t.TempDir(), "PATH="+filepath.Dir(template.Path)+":"+os.Getenv("PATH"))
	output, err := run.CombinedOutput()
	return string(output), err
}

// mustShell runs a command of the administrator, which must succeed.
func mustShell(t *testing.T, c *controlplane.ControlPlane, command string) string {
	t.Helper()
	output, err := shell(t, c, c.AdminKubeconfig, command)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	return output
}
