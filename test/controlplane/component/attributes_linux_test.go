// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/portcullis-dev/portcullis/test/controlplane/component"
)

// parentOf makes this program one that starts a component and waits for its end.
const parentOf = "COMPONENT_TEST_PARENT_OF"

func TestMain(m *testing.M) {
	fifo, ok := os.LookupEnv(parentOf)
	if !ok {
		os.Exit(m.Run())
	}
	c := component.New(component.Config{
		Name:    "shell",
		Binary:  "/bin/sh",
		Args:    []string{"-c", `exec 3>"$0"; while true; do sleep 0.01; done`, fifo},
		LogFile: os.DevNull,
		Ready:   func(context.Context) error { return nil },
	})
	if err := c.Start(context.Background()); err != nil {
		panic(err)
	}
	<-c.Exited()
}

// TestChildrenEndWithTheirParent kills a parent, which cannot do anything about it.
func TestChildrenEndWithTheirParent(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "open-while-the-child-lives")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentOf+"="+fifo)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		child, err := os.Open(fifo) // returns when the child has opened it, too
		if err == nil {
			_ = parent.Process.Kill()
			_, err = io.Copy(io.Discard, child)
			child.Close()
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the child lives on")
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
}
