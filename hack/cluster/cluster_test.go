// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a step may take on a busy machine before it counts as stuck.
const patience = 3 * time.Minute

// TestRun brings a cluster up, kills a replica, and ends as with Ctrl-C.
func TestRun(t *testing.T) {
	dir := relative(t, filepath.Join(t.TempDir(), ".portcullis-cluster"))
	ctx, interrupt := context.WithCancel(t.Context())
	out := &output{}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"--dir", dir}, out) }()
	await(t, out, ended, "Serving until Ctrl-C")

	t.Run("it says what README.md says", func(t *testing.T) {
		got, _, _ := strings.Cut(out.String(), "\n\n")
		got = strings.ReplaceAll(got+"\n", dir, ".portcullis-cluster")
		if want := announced(t); withoutPorts(got) != withoutPorts(want) {
			t.Errorf("got\n%s\nREADME.md has\n%s", got, want)
		}
	})
	t.Run("another one is refused", func(t *testing.T) {
		if _, err := claim(dir); err == nil || !strings.Contains(err.Error(), "already, by process ") {
			t.Errorf("got %v, want a refusal that names the process", err)
		}
	})
	t.Run("a replica that is killed comes back", func(t *testing.T) {
		said := len(out.String())
		if err := syscall.Kill(processes(t, dir)["portcullis-1"], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		awaitAfter(t, out, ended, said, "Running  portcullis-1")
	})

	running := processes(t, dir)
	if len(running) < 2 {
		t.Errorf("two replicas should run, got %v", running)
	}
	interrupt()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	for name, id := range running {
		if err := syscall.Kill(id, 0); err == nil {
			t.Errorf("%s still runs, as process %d", name, id)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, administratorFile)); err == nil {
		t.Error("there is a kubeconfig of a cluster that is gone")
	}
}

// TestRunEndsHalfWay: what was started is stopped when the start is interrupted.
func TestRunEndsHalfWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	ctx, interrupt := context.WithCancel(t.Context())
	out := &output{}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"--dir", dir}, out) }()
	await(t, out, ended, "Running  etcd")
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left := processes(t, dir); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// relative is dir as users give it.
func relative(t *testing.T, dir string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.Rel(here, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// processes are those that use the directory: the replicas by their identity, others
// by their program.
func processes(t *testing.T, dir string) map[string]int {
	t.Helper()
	data, err := filepath.Abs(filepath.Join(dir, dataDir))
	if err != nil {
		t.Fatal(err)
	}
	listed, err := exec.CommandContext(t.Context(), "pgrep", "-a", "-f", data).Output()
	if err != nil && len(listed) > 0 {
		t.Fatal(err)
	}
	found := map[string]int{}
	for line := range strings.Lines(string(listed)) {
		fields := strings.Fields(line)
		name := filepath.Base(fields[1])
		if identity := regexp.MustCompile(`--identity=(\S+)`).FindStringSubmatch(line); identity != nil {
			name = identity[1]
		}
		id, err := strconv.Atoi(fields[0])
		if err != nil {
			t.Fatal(err)
		}
		found[name] = id
	}
	return found
}

// announced is what README.md says that make cluster prints.
func announced(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(content), "```text\nRunning  etcd, ")
	if !found {
		t.Fatal("README.md does not say what make cluster prints")
	}
	text, _, _ := strings.Cut(after, "```")
	return "Running  etcd, " + text
}

func withoutPorts(text string) string {
	return regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(text, "127.0.0.1:PORT")
}

func await(t *testing.T, out *output, ended <-chan error, want string) {
	t.Helper()
	awaitAfter(t, out, ended, 0, want)
}

// awaitAfter waits for want in what follows the first bytes of the output.
func awaitAfter(t *testing.T, out *output, ended <-chan error, first int, want string) {
	t.Helper()
	deadline := time.After(patience)
	for !strings.Contains(out.String()[first:], want) {
		select {
		case err := <-ended:
			t.Fatalf("it ended with %v after\n%s", err, out)
		case <-deadline:
			t.Fatalf("no %q in\n%s", want, out)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// output can be read while it is written.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
