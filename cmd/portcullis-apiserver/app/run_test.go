// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestRunEndsWell covers a signal that arrives before the server is up.
func TestRunEndsWell(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	options := NewOptions()
	options.DataDir, options.SecurePort = t.TempDir(), 0
	var out bytes.Buffer
	if err := Run(ctx, options, &out); err != nil {
		t.Errorf("got error %v, want none", err)
	}
	if out.Len() != 0 {
		t.Errorf("announced %q, though no server ran", &out)
	}
}

func TestCommandVersion(t *testing.T) {
	command := NewCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs([]string{"--version"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "portcullis-apiserver ") || !strings.Contains(got, "go1.") {
		t.Errorf("got %q, want the name, the version and that of Go", got)
	}
}
