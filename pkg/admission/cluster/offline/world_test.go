// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// world is a directory on disk and the Directory of it.
type world struct {
	*testing.T
	dir   string
	clock *clocktesting.FakeClock
	*Directory
	log     *[]string
	ctx     context.Context
	written time.Time // the last file
}

// opened returns the Directory of the given files.
func opened(t *testing.T, files map[string]string, change ...func(*Directory)) *world {
	t.Helper()
	w := &world{T: t, dir: filepath.Join(t.TempDir(), "objects"), clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), log: &[]string{}, written: time.Unix(2000, 0)}
	w.makeDir("")
	for name, content := range files {
		w.write(name, content)
	}
	logger := funcr.New(func(_, args string) { *w.log = append(*w.log, args) }, funcr.Options{})
	w.ctx = klog.NewContext(t.Context(), logger)
	w.Directory = newDirectory(w.dir, w.clock, limits{fileBytes: 1000, totalBytes: 5000, files: 20, objects: 10, depth: 3})
	for _, change := range change {
		change(w.Directory)
	}
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	return w
}

func configMap(name string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}\n"
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) makeDir(name string) {
	w.Helper()
	w.must(os.MkdirAll(w.path(name), 0o755))
}

func (w *world) write(name, content string) {
	w.Helper()
	w.makeDir(filepath.Dir(name))
	w.must(os.WriteFile(w.path(name), []byte(content), 0o600))
	// The clock of a filesystem may be too coarse for a test.
	w.written = w.written.Add(time.Second)
	w.must(os.Chtimes(w.path(name), w.written, w.written))
}

func (w *world) rename(from, to string) {
	w.Helper()
	w.must(os.Rename(w.path(from), w.path(to)))
}

func (w *world) remove(name string) {
	w.Helper()
	w.must(os.RemoveAll(w.path(name)))
}

func (w *world) link(target, name string) {
	w.Helper()
	w.must(os.Symlink(target, w.path(name)))
}

// mount makes what the kubelet makes of a ConfigMap, or changes it as the
// kubelet does.
func (w *world) mount(version string, files map[string]string) {
	w.Helper()
	for name, content := range files {
		w.write(filepath.Join(version, name), content)
	}
	w.link(version, "..data_tmp")
	w.rename("..data_tmp", "..data")
	for name := range files {
		if _, err := os.Lstat(w.path(name)); err != nil {
			w.link(filepath.Join("..data", name), name)
		}
	}
}

// settled looks until the files do not change any more.
func (w *world) settled() {
	w.Helper()
	for range 5 {
		w.clock.Step(settle)
		if !w.look(w.ctx, false) {
			return
		}
	}
	w.Fatal("the files never settle")
}

func configMaps(t *testing.T, view cluster.View) string {
	t.Helper()
	objects, err := view.Objects(t.Context(), cluster.Selection{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Selector: labels.Everything()})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, obj := range objects {
		names = append(names, obj.GetName())
	}
	return strings.Join(names, " ")
}

// want checks what is in force, and what is said about it.
func (w *world) want(names string, reloads, failures int64, problem string) {
	w.Helper()
	if got := configMaps(w.T, w.View()); got != names {
		w.Errorf("got ConfigMaps %q, want %q", got, names)
	}
	status := w.Status()
	if status.Reloads != reloads || status.Failures != failures {
		w.Errorf("got %d reloads and %d failures, want %d and %d", status.Reloads, status.Failures, reloads, failures)
	}
	if got, want := text(status.Err), strings.ReplaceAll(problem, "DIR", w.dir); got != want {
		w.Errorf("got error\n%s\nwant\n%s", got, want)
	}
	if want := len(strings.Fields(names)); status.Objects != want {
		w.Errorf("got %d objects, want %d", status.Objects, want)
	}
	if got := len(*w.log); int64(got) != reloads+failures {
		w.Errorf("got %d lines of log, want one for each reload and failure: %q", got, *w.log)
	}
}
