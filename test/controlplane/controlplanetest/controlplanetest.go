// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplanetest gives a test a control plane of its own.
package controlplanetest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/portcullis-dev/portcullis/test/controlplane"
)

// Start returns a control plane that is ready, and stops it when the test ends. A test
// that failed shows the ends of its logs. BinDir and Dir of the options may be left out:
// they are bin/controlplane of this module, and a directory that is removed afterwards.
func Start(t testing.TB, o controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	if o.BinDir == "" {
		o.BinDir = binDir(t)
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	c, err := controlplane.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, component := range c.Components() {
				t.Logf("the end of the log of %s:\n%s", component.Name(), component.Tail())
			}
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// binDir is where make controlplane puts the binaries.
func binDir(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd() // tests run in the folder of their package
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return filepath.Join(dir, "bin", "controlplane")
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, os.ErrNotExist) || parent == dir {
			t.Fatalf("no go.mod above the test: %v", err)
		}
		dir = parent
	}
}
