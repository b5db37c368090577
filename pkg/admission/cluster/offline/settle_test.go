// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestDirectoryHalfWritten changes a file while it is read.
func TestDirectoryHalfWritten(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a")})
	read, meanwhile := w.read, func() {}
	w.Directory.read = func(found *listing) *outcome {
		defer meanwhile()
		return read(found)
	}

	w.write("a.yaml", configMap("a")+"---\n")
	meanwhile = func() { w.write("a.yaml", configMap("a")+"---\n"+configMap("b")) }
	for _, when := range []string{"before", "while"} {
		if !w.look(w.ctx, false) {
			t.Errorf("got the look taken for the last, want another one for the file that changed %s it was read", when)
		}
	}
	w.want("a", 0, 0, "")
	meanwhile = func() {}
	w.settled()
	w.want("a b", 1, 0, "")
}

func TestDirectoryKeepsChanging(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a")})
	const problem = "DIR: the manifests keep changing while they are read; write them elsewhere and move them here when they are complete"
	began := w.clock.Now()
	for i := 0; w.clock.Since(began) <= 2*patience; i++ {
		w.write("a.yaml", configMap(strings.Repeat("a", i%5+1)))
		if !w.look(w.ctx, false) {
			t.Fatal("got the look taken for the last, want another one while the file changes")
		}
		if w.clock.Since(began) < patience {
			w.want("a", 0, 0, "")
		} else {
			w.want("a", 0, 1, problem)
		}
		w.clock.Step(time.Second)
	}
	w.write("a.yaml", configMap("b"))
	w.settled()
	w.want("b", 1, 1, "")
	// The time begins anew.
	w.write("a.yaml", configMap("cc"))
	w.settled()
	w.want("cc", 2, 1, "")
}

// TestDirectoryStopsChanging has files that are in the end what they were before.
func TestDirectoryStopsChanging(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a")})
	view := w.View()
	names := []string{"a.yaml", "a.txt"}
	for i := range 13 {
		w.rename(names[i%2], names[(i+1)%2])
		w.look(w.ctx, false)
		w.clock.Step(time.Second)
	}
	if w.Status().Err == nil {
		t.Error("got no error while the files keep changing")
	}
	w.rename("a.txt", "a.yaml")
	w.settled()
	w.want("a", 1, 1, "")
	if w.View() != view {
		t.Error("got a new view for the content that was in force")
	}
}

// TestDirectorySeesFolders sees folders without manifests: there may be some
// soon, and until then the folder must be watched.
func TestDirectorySeesFolders(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a")})
	w.makeDir("sub")
	w.settled()
	if got := len(w.seen.folders); got != 2 {
		t.Errorf("got %d folders, want 2", got)
	}
}

// TestDirectoryRereads reads again what the system has refused to read, and what
// was written in a way that cannot be seen.
func TestDirectoryRereads(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a")})
	read := w.read
	w.write("a.yaml", configMap("b"))
	w.Directory.read = func(*listing) *outcome { return &outcome{unread: true, err: errors.New("input/output error")} }
	w.settled()
	w.settled()
	w.want("a", 0, 1, "input/output error")
	w.Directory.read = read
	w.settled()
	w.want("b", 1, 1, "")

	info, err := os.Stat(w.path("a.yaml"))
	w.must(err)
	w.write("a.yaml", configMap("c"))
	w.must(os.Chtimes(w.path("a.yaml"), info.ModTime(), info.ModTime()))
	w.settled()
	w.want("b", 1, 1, "")
	w.look(w.ctx, true)
	w.want("c", 2, 1, "")
}

func TestDirectoryPanic(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a")})
	w.Directory.read = func(*listing) *outcome { panic("at the disco") }
	w.write("a.yaml", configMap("bb"))
	w.settled()
	w.want("a", 0, 1, "DIR: loading the manifests failed: at the disco; this is a fault of the program, please report it")
}
