// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

// TestFirstTenMinutes does what README.md says under that heading, and then what
// docs/access.md has a reader try, and compares as TestTour does.
func TestFirstTenMinutes(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := newcomer(t, root)
	steps := stepsOf(t, root, "README.md", "The first ten minutes", 15)
	steps = append(steps, stepsOf(t, root, filepath.Join("docs", "access.md"), "Try it", 2)...)
	walk(t, dir, steps)
}

// firstTerminal is the file with the process that runs in the first terminal.
const firstTerminal = "first.pid"

// secondServer stands in the place of the server. It does what a reader does in the
// first terminal: it ends what runs there, and starts the server. It returns when the
// server is ready.
const secondServer = `#!/bin/sh
kill -INT "$(cat first.pid)"
while kill -0 "$(cat first.pid)" 2>/dev/null; do sleep 0.1; done
%q "$@" --secure-port 0 >server.log 2>&1 &
echo $! >first.pid
until kubectl get --raw /readyz >readyz.log 2>&1; do
  kill -0 $! || { cat server.log; exit 1; }
  sleep 0.1
done
`

// newcomer makes the folder in which a reader is after make run, which runs.
func newcomer(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	bin, server := filepath.Join(dir, "bin"), filepath.Join(root, "bin", "portcullis-apiserver")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "portcullis-apiserver"), fmt.Appendf(nil, secondServer, server), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "artifacts"), filepath.Join(dir, "artifacts")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(root, "bin", "controlplane")+string(filepath.ListSeparator)+os.Getenv("PATH"))

	t.Cleanup(func() { interrupt(t, dir) })
	quickstart(t, root, dir, server)
	return dir
}

// quickstart does what make run does, up to the point where it serves.
func quickstart(t *testing.T, root, dir, server string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "quickstart"), "--server", server, "--secure-port", "0")
	command.Dir, command.Stderr = dir, os.Stderr
	// It is ended by whoever reads first.pid.
	command.Cancel = func() error { return nil }
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(patience, func() { _ = command.Process.Kill() })
	defer stuck.Stop()
	serving, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "Serving until Ctrl-C") {
				close(serving)
			}
		}
		ended <- command.Wait()
	}()
	if err := os.WriteFile(filepath.Join(dir, firstTerminal), []byte(strconv.Itoa(command.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-serving:
	case err := <-ended:
		t.Fatalf("make run has ended: %v", err)
	}
}

// interrupt ends what runs in the first terminal.
func interrupt(t *testing.T, dir string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, firstTerminal))
	if err != nil {
		t.Error(err)
		return
	}
	process, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Error(err)
		return
	}
	if err := syscall.Kill(process, syscall.SIGINT); err != nil {
		t.Errorf("the server has ended before: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return errors.Is(syscall.Kill(process, 0), syscall.ESRCH), nil
	})
	if err != nil {
		t.Errorf("the server does not end: %v", err)
	}
}
