// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustertest gives tests a cluster with Portcullis in it.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

// Start starts a cluster of its own for a test, and stops it when the test ends. A
// test that failed shows the ends of the logs.
func Start(t testing.TB, change ...func(*cluster.Options)) *cluster.Cluster {
	t.Helper()
	options, err := cluster.FromRepository(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, next := range change {
		next(&options)
	}
	c, err := cluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			Tell(t.Logf, c)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Tell shows the ends of the logs of a cluster.
func Tell(logf func(format string, args ...any), c *cluster.Cluster) {
	for _, program := range c.Components() {
		logf("the end of the log of %s:\n%s", program.Name(), program.Tail())
	}
}

// Main runs the tests of a package that share one cluster, which use is given before
// they run. It is what TestMain calls, and returns the code to exit with.
func Main(m *testing.M, use func(*cluster.Cluster)) int {
	code, err := run(m, use)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

func run(m *testing.M, use func(*cluster.Cluster)) (code int, err error) {
	dir, err := os.MkdirTemp("", "portcullis-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	options, err := cluster.FromRepository(dir)
	if err != nil {
		return 1, err
	}
	c, err := cluster.Start(context.Background(), options)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	use(c)
	if code = m.Run(); code != 0 {
		Tell(func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }, c)
	}
	return code, nil
}
