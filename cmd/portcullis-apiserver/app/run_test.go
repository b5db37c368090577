// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// TestRunRefusesUsers: a server that would not know its users does not start.
func TestRunRefusesUsers(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	for flag, set := range map[string]func(*Options){
		"--client-ca-file":  func(o *Options) { o.ClientCAFile = absent },
		"--token-auth-file": func(o *Options) { o.TokenAuthFile = absent },
	} {
		options := NewOptions()
		options.DataDir, options.SecurePort = filepath.Join(t.TempDir(), "data"), 0
		set(options)
		err := Run(t.Context(), options, io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), flag+": ") || !strings.Contains(err.Error(), absent) {
			t.Errorf("%s: got error %v, want one that names flag and file", flag, err)
		}
		if _, err := os.Stat(options.DataDir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the data dir was made all the same: %v", flag, err)
		}
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
