// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/test/controlplane/component"
)

// patience is how long a step may take on a busy machine before it counts as stuck.
const patience = time.Minute

// serving becomes ready by writing the file that is its argument.
const serving = `trap 'rm "$1"; echo stopping; exit 0' TERM
echo "serving as $WHO" >&2
touch "$1"
while true; do sleep 0.01; done
`

// play returns a component that is the shell script body, and is ready when there is a file ready.
func play(t *testing.T, body string) (c *component.Component, ready string) {
	t.Helper()
	dir := t.TempDir()
	ready = filepath.Join(dir, "ready")
	binary := filepath.Join(dir, "script")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	c = component.New(component.Config{
		Name:    "script",
		Binary:  binary,
		Args:    []string{ready},
		Env:     []string{"WHO=one"},
		LogFile: filepath.Join(dir, "log"),
		Ready: func(context.Context) error {
			_, err := os.Stat(ready)
			return err
		},
	})
	t.Cleanup(c.Kill)
	return c, ready
}

func TestStartAndStop(t *testing.T) {
	c, _ := play(t, serving)
	if err := c.Stop(); err != nil || c.PID() != 0 || c.Exited() != nil {
		t.Errorf("before the first start: %v", err)
	}
	for range 2 {
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("script runs already, as process %d", c.PID())
		if err := c.Start(t.Context()); err == nil || err.Error() != want {
			t.Errorf("a second start: got error %v, want %s", err, want)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Kill()
	if err := c.Stop(); err != nil {
		t.Errorf("after it was killed: %v", err)
	}
	want := strings.TrimSuffix(strings.Repeat("serving as one\nstopping\n", 2), "\n") + "\nserving as one"
	if got := c.Tail(); got != want {
		t.Errorf("log:\n%s\nwant:\n%s", got, want)
	}
}

func TestReadinessIsWaitedFor(t *testing.T) {
	c, _ := play(t, `echo "broken flag"; exit 3`)
	wantError(t, c.Start(t.Context()), "script ended before it was ready: exit status 3", "broken flag")

	c, _ = play(t, "echo waiting; while true; do sleep 0.01; done")
	ctx, cancel := context.WithCancelCause(t.Context())
	// It ends while there is something to wait for.
	go func() {
		for !strings.Contains(c.Tail(), "waiting") {
			time.Sleep(time.Millisecond)
		}
		cancel(errors.New("the test is over"))
	}()
	wantError(t, c.Start(ctx), "script is not ready: the test is over: stat ", "waiting")
	select {
	case <-c.Exited():
	case <-time.After(patience):
		t.Error("what did not become ready runs on")
	}

	missing := component.New(component.Config{Name: "script", Binary: filepath.Join(t.TempDir(), "absent"), LogFile: filepath.Join(t.TempDir(), "log")})
	wantError(t, missing.Start(t.Context()), "start script: fork/exec ")
}

func TestCrashIsReported(t *testing.T) {
	c, ready := play(t, `touch "$1"; while [ -e "$1" ]; do sleep 0.01; done; echo crashed; exit 3`)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(ready); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Exited():
	case <-time.After(patience):
		t.Fatal("the crash is not seen")
	}
	wantError(t, c.Stop(), "script ended unasked: exit status 3", "crashed")
	if err := c.Stop(); err != nil {
		t.Errorf("told twice: %v", err)
	}
}

func TestPause(t *testing.T) {
	c, ready := play(t, `while true; do touch "$1"; sleep 0.01; done`)
	if err := c.Pause(); err == nil || err.Error() != "script does not run" {
		t.Errorf("before the start: got error %v", err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(ready); err != nil {
		t.Fatal(err)
	}
	if err := c.Resume(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(ready); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not go on")
		}
	}
	if err := c.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stop of what is paused: %v", err)
	}
}

// wantError expects an error that begins with a text and contains others.
func wantError(t *testing.T, err error, prefix string, texts ...string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), prefix) {
		t.Errorf("got error %v, want one that begins with %s", err, prefix)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got error %v, which lacks %s", err, text)
		}
	}
}
