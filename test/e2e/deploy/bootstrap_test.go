// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/cluster/clustertest"
)

// TestBootstrapPolicies: policies of a ConfigMap, as a Pod mounts it, are in force
// before the first request that is judged, and the API cannot change them.
func TestBootstrapPolicies(t *testing.T) {
	dir := mounted(t, map[string]string{"policies.yaml": bootstrapPolicy})
	c := clustertest.Start(t, func(o *cluster.Options) { o.ServerArgs = append(o.ServerArgs, "--bootstrap-policies="+dir) })
	for _, replica := range c.Replicas {
		replica.Kill()
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, replica := range c.Replicas {
		if err := replica.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Nobody waits until the Service leads there.
		const message = "denied by a bootstrap policy"
		refused := 0
		eventually(t, "the first request is judged", func() string {
			err := create(t.Context(), client, true)
			if err == nil {
				t.Fatal("the first request was admitted")
			}
			if !strings.Contains(err.Error(), message) {
				refused++
				return err.Error()
			}
			return ""
		})
		t.Logf("%d requests were refused until %s answered", refused, replica.Identity)
	}
	waitBalanced(t, c)
	load := judge(t, c, "denied by a bootstrap policy")
	load.more(t, 20)
	load.check(t, "bootstrap policies")

	if output, err := kubectl(t, c.ControlPlane, bootstrapPolicy, "apply", "-f", "-"); err == nil || !strings.Contains(output, ".static.k8s.io") {
		t.Errorf("got error %v and %q, want that the name is reserved", err, output)
	}
	for _, name := range []string{"denied.static.k8s.io", "another.static.k8s.io"} {
		if output, err := kubectl(t, c.ControlPlane, "", "delete", "pvap", name); err == nil {
			t.Errorf("%s was deleted: %s", name, output)
		}
	}
	load = judge(t, c, "denied by a bootstrap policy")
	load.more(t, 5)
	load.check(t, "after the API was asked to change them")
}

// mounted is a folder as kubelet mounts a ConfigMap.
func mounted(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	data := filepath.Join(dir, "..2026_03_01_12_00_00.1")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Base(data), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(data, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
