// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a step may take on a busy machine before it counts as stuck.
const patience = time.Minute

const example = "../../artifacts/examples/quickstart"

// binary is the path of the server, built once by TestMain.
var binary string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "portcullis-quickstart-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "portcullis-apiserver")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", binary, "github.com/portcullis-dev/portcullis/cmd/portcullis-apiserver")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build portcullis-apiserver:", err)
		return 1
	}
	return m.Run()
}

// output may be read while the command runs.
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

func flags(dataDir, port string, more ...string) []string {
	return append([]string{"--server", binary, "--example", example, "--data-dir", dataDir, "--secure-port", port}, more...)
}

const answer = `Running  portcullis-apiserver at https://ADDRESS
Stored   ValidatingAdmissionPolicy demo-policy.example.com
Stored   ValidatingAdmissionPolicyBinding demo-binding-test.example.com

May kubernetes-admin CREATE Deployment nginx with 6 replicas in namespace test? (` + example + `/review.json)
POST https://ADDRESS/admission/v1/validate

  allowed: false
  code:    422 Invalid
  message: ValidatingAdmissionPolicy 'demo-policy.example.com' with binding 'demo-binding-test.example.com' denied request: failed expression: object.spec.replicas <= 5
`

// anyPort makes outputs comparable.
func anyPort(text string) string {
	return regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(text, "ADDRESS")
}

// The second run finds what the first has stored.
func TestOnceAndAgain(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), "data")
	for _, try := range []string{"first", "second"} {
		var out output
		if err := run(t.Context(), flags(dataDir, "0", "--once"), &out); err != nil {
			t.Fatalf("%s run: %v\n%s", try, err, &out)
		}
		if got := anyPort(out.String()); got != answer {
			t.Errorf("%s run says\n%s\nwant\n%s", try, got, answer)
		}
	}
}

func TestServesUntilInterrupted(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), "data")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out output
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, flags(dataDir, "0"), &out) }()
	waitFor(t, &out, ended, "Serving until Ctrl-C")
	for _, want := range []string{
		"export KUBECONFIG=" + dataDir + "/kubeconfig\n",
		"kubectl create -f " + example + "/preview.yaml -o yaml\n",
		"kubectl delete pvapb demo-binding-test.example.com\n",
		"kubectl create --raw /admission/v1/validate -f " + example + "/review.json\n",
		"logs to " + dataDir + "/server.log",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("does not say %q:\n%s", want, &out)
		}
	}
	t.Run("data dir in use", func(t *testing.T) {
		err := run(t.Context(), flags(dataDir, "0"), &output{})
		expectLine(t, err, "data dir "+dataDir+" is in use by another portcullis-apiserver (pid ", `(make run RUN_FLAGS="--data-dir ...")`)
	})
	interrupt()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("an interrupt ends it with error %v, want none", err)
		}
	case <-time.After(patience):
		t.Fatal("an interrupt does not end it")
	}
}

func TestPortInUse(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), flags(filepath.Join(t.TempDir(), "data"), port), &output{})
	expectLine(t, err, "port "+port+" on address 127.0.0.1 is in use by another process: ", `(make run RUN_FLAGS="--secure-port ...")`)
}

func TestArgumentsAreRefused(t *testing.T) {
	expectLine(t, run(t.Context(), []string{"once"}, &output{}), `unknown argument "once": `, "only flags are taken")
}

// expectLine wants an error of one line with this beginning and this end.
func expectLine(t *testing.T, err error, prefix, suffix string) {
	t.Helper()
	if err == nil {
		t.Fatal("got no error")
	}
	if text := err.Error(); !strings.HasPrefix(text, prefix) || !strings.HasSuffix(text, suffix) || strings.Contains(text, "\n") {
		t.Errorf("got error\n%s\nwant a line\n%s...%s", text, prefix, suffix)
	}
}

// waitFor returns once out contains text, and fails the test when the command ends before.
func waitFor(t *testing.T, out *output, ended <-chan error, text string) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(out.String(), text) {
		select {
		case err := <-ended:
			t.Fatalf("ended with error %v before it said %q:\n%s", err, text, out)
		case <-deadline:
			t.Fatalf("does not say %q:\n%s", text, out)
		case <-tick.C:
		}
	}
}
