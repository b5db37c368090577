// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package doors

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/controlplane"
	"github.com/portcullis-dev/portcullis/test/controlplane/controlplanetest"
)

// TestUnnamedProxies: in a cluster in which every certificate of an authority would
// speak for every user, no server serves.
func TestUnnamedProxies(t *testing.T) {
	c := controlplanetest.Start(t, controlplane.Options{AnyFrontProxy: true})
	o, err := cluster.FromRepository(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, o.Server, "--kubeconfig="+c.AdminKubeconfig, "--etcd-servers=http://127.0.0.1:1",
		"--data-dir="+filepath.Join(t.TempDir(), "data"), "--secure-port=0")
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("got %v, want that the server ends with an error: %s", err, output)
	}
	for _, want := range []string{"kube-system/extension-apiserver-authentication", "it names no proxies", "--requestheader-allowed-names"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("got %s, want %s in it", output, want)
		}
	}
}
