// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// TestWatchEnds lets go of what a link does not lead to any more.
func TestWatchEnds(t *testing.T) {
	w := opened(t, map[string]string{"1/objects/a.yaml": configMap("a"), "2/objects/a.yaml": configMap("b")})
	w.link("1", "link")
	dir := w.path("link/objects")
	watching := newWatch(dir)
	defer watching.close()
	for _, target := range []string{"1", "2", "1", "2"} {
		w.link(target, "tmp")
		w.rename("tmp", "link")
		if err := watching.update(w.bounds.list(dir)); err != nil {
			t.Fatal(err)
		}
		// The folder, what the link leads to, and where the link is.
		if got, want := watches(t), 3; got != want {
			t.Errorf("got %d watches, want %d", got, want)
		}
	}
}

// watches counts what the kernel watches for the process.
func watches(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("looks into /proc")
	}
	files, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		// What is not open any more is not there any more.
		info, _ := os.ReadFile(file)
		count += strings.Count(string(info), "inotify wd:")
	}
	return count
}

func TestWatchConcerns(t *testing.T) {
	w := &watch{inside: map[string]bool{"/o": true, "/o/sub": true}, above: map[string]bool{"/o": true, "/link": true}}
	tests := []struct {
		event       fsnotify.Event
		seen, wrote bool
	}{
		{fsnotify.Event{Name: "/o/a.yaml", Op: fsnotify.Write}, true, true},
		{fsnotify.Event{Name: "/o/sub/a.json", Op: fsnotify.Create}, true, true},
		{fsnotify.Event{Name: "/o/a.yaml", Op: fsnotify.Chmod}, true, false},
		{fsnotify.Event{Name: "/o/a.yml", Op: fsnotify.Remove}, true, false},
		{fsnotify.Event{Name: "/o/a.log", Op: fsnotify.Write}, false, false},
		{fsnotify.Event{Name: "/o/.a.yaml", Op: fsnotify.Write}, false, false},
		{fsnotify.Event{Name: "/o/..data", Op: fsnotify.Create}, true, false},
		{fsnotify.Event{Name: "/o/sub", Op: fsnotify.Rename}, true, false},
		{fsnotify.Event{Name: "/o/sub", Op: fsnotify.Chmod}, false, false},
		{fsnotify.Event{Name: "/o", Op: fsnotify.Remove}, true, false},
		{fsnotify.Event{Name: "/link", Op: fsnotify.Create}, true, false},
		{fsnotify.Event{Name: "/other.yaml", Op: fsnotify.Write}, false, false},
		{fsnotify.Event{Name: "/other", Op: fsnotify.Create}, false, false},
	}
	for _, test := range tests {
		seen, wrote := w.concerns(test.event)
		if seen != test.seen || wrote != test.wrote {
			t.Errorf("%s: got %t, %t, want %t, %t", test.event, seen, wrote, test.seen, test.wrote)
		}
	}
}
