// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/hack/internal/process"
)

// patience is how long a step may take before it counts as stuck.
const patience = time.Minute

// play returns a server that is the shell script body.
func play(t *testing.T, body string) process.Options {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "server")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return process.Options{Binary: binary, DataDir: dir}
}

const serving = `
trap 'echo stopping >&2; exit 0' TERM
echo "$@" >&2
echo ready
while true; do sleep 0.01; done
`

func TestStopEndsTheServer(t *testing.T) {
	options := play(t, serving)
	options.SecurePort, options.Objects = 1, "objects"
	server, err := process.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(options.DataDir, "kubeconfig"); server.Kubeconfig != want {
		t.Errorf("kubeconfig %s, want %s", server.Kubeconfig, want)
	}
	if err := server.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	written, err := os.ReadFile(server.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	want := "--data-dir " + options.DataDir + " --secure-port 1 --objects objects\nstopping\n"
	if string(written) != want {
		t.Errorf("log:\n%s\nwant:\n%s", written, want)
	}
}

func TestContextEndsTheServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server, err := process.Start(ctx, play(t, serving))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-server.Exited():
	case <-time.After(patience):
		t.Fatal("the server does not stop")
	}
	if err := server.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestFailuresAreReported(t *testing.T) {
	tests := []struct {
		name string
		body string
		want string
	}{
		{"in its own words", "echo 'I1 starting' >&2; echo 'error: the port is taken' >&2; exit 1", "the port is taken"},
		{"by its exit code", "echo 'panic: x' >&2; exit 3", "the server ended badly: exit status 3"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := process.Start(t.Context(), play(t, tc.body))
			if err == nil || err.Error() != tc.want {
				t.Errorf("before it is ready: got error %v, want %s", err, tc.want)
			}
			options := play(t, `echo ready; while [ ! -e "$2/end" ]; do sleep 0.01; done;`+tc.body)
			server, err := process.Start(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(options.DataDir, "end"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			select {
			case <-server.Exited():
			case <-time.After(patience):
				t.Fatal("the end of the server is not seen")
			}
			if err := server.Stop(); err == nil || err.Error() != tc.want {
				t.Errorf("after it was ready: got error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := process.Start(ctx, play(t, "while true; do sleep 0.01; done"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestBinaryIsMissing(t *testing.T) {
	_, err := process.Start(t.Context(), process.Options{Binary: filepath.Join(t.TempDir(), "absent"), DataDir: t.TempDir()})
	if err == nil || !strings.HasPrefix(err.Error(), "run the server: ") {
		t.Errorf("got error %v, want one that says what could not be run", err)
	}
}
