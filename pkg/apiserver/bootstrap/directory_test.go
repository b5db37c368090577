// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// followed is a directory that a test looks at.
type followed struct {
	*Directory
	t     *testing.T
	dir   string
	clock *clocktesting.FakeClock
	got   []string // the names of the units that were enforced, for each time
}

func follow(t *testing.T, files map[string]string) *followed {
	t.Helper()
	f := &followed{t: t, dir: t.TempDir(), clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	put(t, f.dir, files)
	manifests, compiler := parts(t)
	var err error
	if f.Directory, err = Open(t.Context(), f.dir, manifests, compiler, f.clock); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *followed) look() bool {
	f.clock.Step(settle)
	return f.Directory.look(f.t.Context(), func(units []*policy.Unit) { f.got = append(f.got, names(units)) })
}

// settled looks until the manifests have not changed since the look before.
func (f *followed) settled() {
	f.t.Helper()
	for range 2 {
		if f.look() {
			return
		}
	}
	f.t.Fatal("the manifests do not settle")
}

func (f *followed) expect(units string, reloads, failures int64, fault string) {
	f.t.Helper()
	status := f.Status()
	if got := names(f.Units()); got != units {
		f.t.Errorf("%q in force, want %q", got, units)
	}
	if status.Reloads != reloads || status.Failures != failures || status.Objects != len(f.Units()) {
		f.t.Errorf("status %+v, want %d reloads and %d failures", status, reloads, failures)
	}
	if got := strings.ReplaceAll(fmt.Sprint(status.Err), f.dir, "DIR"); fault == "" && status.Err != nil || !strings.Contains(got, fault) {
		f.t.Errorf("the fault is %s, want %q", got, fault)
	}
	if int64(len(f.got)) != reloads {
		f.t.Errorf("enforced %q, want %d changes", f.got, reloads)
	}
}

// TestFollow: a good change is taken, a bad one changes nothing but the status.
func TestFollow(t *testing.T) {
	a, b := policyOf(served, "a.static.k8s.io"), policyOf(served, "b.static.k8s.io")
	f := follow(t, map[string]string{"a.yaml": a})
	first := f.Status()
	f.settled()
	f.expect("a", 0, 0, "")

	put(t, f.dir, map[string]string{"b.yaml": b})
	if f.look() {
		t.Error("a change is taken before it has settled")
	}
	f.expect("a", 0, 0, "")
	f.settled()
	f.expect("a b", 1, 0, "")
	if status := f.Status(); status.Hash == first.Hash || !status.LoadedAt.After(first.LoadedAt) {
		t.Errorf("after a change the status is %+v", status)
	}

	put(t, f.dir, map[string]string{"b.yaml": strings.Replace(b, "b.static", "b.dynamic", 1)})
	f.settled()
	f.expect("a b", 1, 1, `DIR/b.yaml: document 1, line 1: metadata.name: Invalid value: "b.dynamic.k8s.io"`)
	f.settled()
	f.expect("a b", 1, 1, "b.dynamic") // told once

	put(t, f.dir, map[string]string{"b.yaml": ""}) // as a shell does before it writes
	f.settled()
	f.expect("a b", 1, 2, "DIR/b.yaml: the file has no objects")

	put(t, f.dir, map[string]string{"b.yaml": b}) // back to what is in force
	f.settled()
	f.expect("a b", 2, 2, "")

	if err := os.Remove(filepath.Join(f.dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	f.settled()
	f.expect("b", 3, 2, "")
}

// TestGone: policies do not go out of force because a volume does.
func TestGone(t *testing.T) {
	a := policyOf(served, "a.static.k8s.io")
	f := follow(t, map[string]string{"a.yaml": a})
	if err := os.Remove(filepath.Join(f.dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	f.settled()
	f.expect("a", 0, 1, "DIR: all manifests are gone")
	if err := os.Remove(f.dir); err != nil {
		t.Fatal(err)
	}
	f.settled()
	f.expect("a", 0, 2, "directory of bootstrap policies: open DIR: no such file or directory")
	put(t, f.dir, map[string]string{"a.yaml": a, "b.yaml": policyOf(home, "b.static.k8s.io")})
	f.settled()
	f.expect("a b", 1, 2, "")
}

// TestKeepsChanging: whoever never stops writing is told, once.
func TestKeepsChanging(t *testing.T) {
	f := follow(t, map[string]string{"a.yaml": policyOf(served, "a.static.k8s.io")})
	for i := range 2 * int(patience/settle) {
		put(t, f.dir, map[string]string{"b.yaml": fmt.Sprintf("# %d\n", i)})
		if f.look() {
			t.Fatal("it has settled")
		}
	}
	f.expect("a", 0, 1, "DIR: the manifests keep changing while they are read")
	put(t, f.dir, map[string]string{"b.yaml": policyOf(served, "b.static.k8s.io")})
	f.settled()
	f.expect("a b", 1, 1, "")
}

// panics is a compiler that has a fault.
type panics struct{}

func (panics) Compile(context.Context, string, runtime.Object) (*policy.Unit, field.ErrorList) {
	panic("no")
}

func TestPanic(t *testing.T) {
	f := follow(t, map[string]string{"a.yaml": policyOf(served, "a.static.k8s.io")})
	f.loader.compiler = panics{}
	put(t, f.dir, map[string]string{"b.yaml": policyOf(served, "b.static.k8s.io")})
	f.settled()
	f.expect("a", 0, 1, "DIR: loading the bootstrap policies failed: no")
}

// TestOpenWhileWritten: what is still being written at the start is waited for, and
// not for ever.
func TestOpenWhileWritten(t *testing.T) {
	for _, writes := range []int{3, 100} {
		dir := t.TempDir()
		put(t, dir, map[string]string{"a.yaml": "kind: x"})
		clock := &writingClock{FakeClock: clocktesting.NewFakeClock(time.Unix(0, 0)), write: func(n int) {
			if n <= writes {
				put(t, dir, map[string]string{"a.yaml": policyOf(served, fmt.Sprintf("a%d.static.k8s.io", n))})
			}
		}}
		manifests, compiler := parts(t)
		opened, err := Open(t.Context(), dir, manifests, compiler, clock)
		switch {
		case writes < attempts && (err != nil || names(opened.Units()) != "a3"):
			t.Errorf("after %d writes: %v", writes, err)
		case writes >= attempts && (err == nil || !strings.Contains(err.Error(), "keep changing")):
			t.Errorf("while it is written: %v", err)
		}
	}
}

// writingClock writes while someone sleeps.
type writingClock struct {
	*clocktesting.FakeClock
	slept int
	write func(slept int)
}

func (c *writingClock) Sleep(d time.Duration) {
	c.FakeClock.Sleep(d)
	c.slept++
	c.write(c.slept)
}

// TestRun follows real files by a real clock until the context ends.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a.yaml": policyOf(served, "a.static.k8s.io")})
	manifests, compiler := parts(t)
	opened, err := Open(t.Context(), dir, manifests, compiler, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"b.yaml": policyOf(served, "b.static.k8s.io")}) // before Run
	ctx, stop := context.WithCancel(t.Context())
	enforced, ended := make(chan string, 10), make(chan struct{})
	go func() {
		defer close(ended)
		opened.Run(ctx, func(units []*policy.Unit) { enforced <- names(units) })
	}()
	for _, want := range []string{"a b", "a b c"} {
		select {
		case got := <-enforced:
			if got != want {
				t.Errorf("enforced %q, want %q", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%q is not enforced: %+v", want, opened.Status())
		}
		put(t, dir, map[string]string{"c.yaml": policyOf(served, "c.static.k8s.io")})
	}
	stop()
	<-ended
}
