// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process_test drives the binary portcullis-apiserver as a user does:
// flags in, exit code and stderr out, and the kubeconfig it writes in between. It
// knows no internals of the server.
package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned"
)

const (
	// patience is how long a step may take on a busy machine before it counts as stuck.
	patience     = 2 * time.Minute
	pollInterval = 5 * time.Millisecond
)

// binary is the path of the server under test, built once by TestMain.
var binary string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "portcullis-process-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // others run the binary, too
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "portcullis-apiserver")
	build := exec.Command("go", "build", "-o", binary, "github.com/portcullis-dev/portcullis/cmd/portcullis-apiserver")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build portcullis-apiserver:", err)
		return 1
	}
	return m.Run()
}

// server is a process under test.
type server struct {
	command    *exec.Cmd
	kubeconfig string
	stdout     output
	stderr     output
	exited     chan struct{} // closed when the process has ended
}

// output is what a process wrote. It may be read while the process runs.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// launch starts a server on dataDir. A process that still runs when the test ends is killed.
func launch(t *testing.T, dataDir string, flags ...string) *server {
	t.Helper()
	return launchAs(t, nil, dataDir, flags...)
}

// launchAs is launch as another user, or as the one who runs the test when as is nil.
func launchAs(t *testing.T, as *syscall.Credential, dataDir string, flags ...string) *server {
	t.Helper()
	s := &server{kubeconfig: filepath.Join(dataDir, "kubeconfig"), exited: make(chan struct{})}
	s.command = exec.Command(binary, append([]string{"--data-dir", dataDir}, flags...)...)
	s.command.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	s.command.Stdout, s.command.Stderr = &s.stdout, &s.stderr
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.command.Wait() // the exit code is read from ProcessState
		close(s.exited)
	}()
	t.Cleanup(func() {
		_ = s.command.Process.Kill()
		<-s.exited
		if t.Failed() {
			t.Logf("stderr of process %d:\n%s", s.command.Process.Pid, &s.stderr)
		}
	})
	return s
}

// launchReady starts a server on a free port and waits until it is ready.
func launchReady(t *testing.T, dataDir string) *server {
	t.Helper()
	s := launch(t, dataDir, "--secure-port", "0")
	s.waitReady(t)
	return s
}

// waitReady asks /readyz with the kubeconfig as it is at that moment: until the
// server has written its own, the file is absent or that of an earlier process.
func (s *server) waitReady(t *testing.T) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, patience, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.exited:
			return false, fmt.Errorf("the server ended with code %d", s.command.ProcessState.ExitCode())
		default:
			return s.ready(ctx), nil
		}
	})
	if err != nil {
		t.Fatalf("the server is not ready: %v\n%s", err, &s.stderr)
	}
}

func (s *server) ready(ctx context.Context) bool {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return false
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return false
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// config is the administrator's access, without a limit on the rate of calls.
func (s *server) config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func (s *server) client(t *testing.T) versioned.Interface {
	t.Helper()
	client, err := versioned.NewForConfig(s.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// waitExit returns the exit code of a process that ends by itself.
func (s *server) waitExit(t *testing.T) int {
	t.Helper()
	select {
	case <-s.exited:
		return s.command.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("the server still runs after %s", patience)
		return -1
	}
}

// terminate asks the server to stop and expects it to end well.
func (s *server) terminate(t *testing.T) {
	t.Helper()
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.waitExit(t); code != 0 {
		t.Fatalf("after SIGTERM: got exit code %d, want 0", code)
	}
}

// kill ends the server as a power cut does.
func (s *server) kill(t *testing.T) {
	t.Helper()
	if err := s.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-s.exited
}
