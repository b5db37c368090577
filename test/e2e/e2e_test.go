// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e uses Portcullis as its users do: in a cluster with a real
// kube-apiserver, installed with the manifests of artifacts/deploy, through kubectl.
package e2e

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/cluster/clustertest"
)

// shared is the cluster of the tests that leave it as they found it.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(clustertest.Main(m, func(c *cluster.Cluster) { shared = c }))
}

// patience is how long a command may take on a busy machine before it counts as stuck.
const patience = 3 * time.Minute

// kubectl runs kubectl as the administrator, with input as its standard input, and
// returns what it says and whether it failed. It can be used when a test is over, to
// clean up.
func kubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	command := shared.Kubectl(ctx, shared.AdminKubeconfig, args...)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	return string(output), err
}

// must runs kubectl, which must succeed.
func must(t *testing.T, input string, args ...string) string {
	t.Helper()
	output, err := kubectl(t, input, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}
