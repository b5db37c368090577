// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"os"
	"testing"
	"time"
)

func TestDirectoryFollows(t *testing.T) {
	tests := []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"a file is added", func(w *world) { w.write("c.yaml", configMap("c")) }, "a b c"},
		{"a file is changed", func(w *world) { w.write("a.yaml", configMap("z")) }, "b z"},
		{"a file is removed", func(w *world) { w.remove("a.yaml") }, "b"},
		{"a file takes the place of another", func(w *world) {
			w.write(".a.yaml.swp", configMap("new"))
			w.rename(".a.yaml.swp", "a.yaml")
		}, "b new"},
		{"a file takes the place of another with its size and times", func(w *world) {
			w.write(".z", configMap("z"))
			info, err := os.Stat(w.path("a.yaml"))
			w.must(err)
			w.must(os.Chtimes(w.path(".z"), info.ModTime(), info.ModTime()))
			w.rename(".z", "a.yaml")
		}, "b z"},
		{"a file becomes a manifest by its name", func(w *world) { w.rename("c.txt", "c.json") }, "a b c"},
		{"a manifest becomes none by its name", func(w *world) { w.rename("a.yaml", "a.yaml.bak") }, "b"},
		{"a folder is added", func(w *world) { w.write("new/deep/c.yaml", configMap("c")) }, "a b c"},
		{"a folder is removed", func(w *world) { w.remove("sub") }, "a"},
		{"a folder is hidden", func(w *world) { w.rename("sub", ".sub") }, "a"},
		{"a link is added", func(w *world) { w.link("c.txt", "c.yaml") }, "a b c"},
		{"all is another version", func(w *world) {
			w.write("../next/x.yaml", configMap("x"))
			w.rename("", "../old")
			w.rename("../next", "")
		}, "x"},
		{"nothing is left", func(w *world) {
			w.remove("a.yaml")
			w.remove("sub/b.yaml")
		}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := opened(t, map[string]string{"a.yaml": configMap("a"), "sub/b.yaml": configMap("b"), "c.txt": configMap("c")})
			w.want("a b", 0, 0, "")
			before := w.View()
			test.change(w)
			if !w.look(w.ctx, false) {
				t.Error("the change is not seen, or is not given the time to settle")
			}
			if w.View() != before {
				t.Error("the change is in force before it has settled")
			}
			w.settled()
			w.want(test.want, 1, 0, "")
			if got := w.Status().LoadedAt; !got.Equal(w.clock.Now()) {
				t.Errorf("loaded at %v, want %v", got, w.clock.Now())
			}
			if configMaps(t, before) != "a b" {
				t.Error("the old view has changed")
			}
			w.settled()
			w.want(test.want, 1, 0, "")
		})
	}
}

func TestDirectoryFollowsMount(t *testing.T) {
	w := opened(t, nil)
	w.mount("..1", map[string]string{"a.yaml": configMap("a"), "b.yaml": configMap("b")})
	w.settled()
	w.want("a b", 1, 0, "")
	w.mount("..2", map[string]string{"a.yaml": configMap("c"), "b.yaml": configMap("d")})
	w.settled()
	w.want("c d", 2, 0, "")
}

func TestDirectoryContentUnchanged(t *testing.T) {
	tests := []struct {
		name   string
		change func(w *world)
	}{
		{"touched", func(w *world) { w.must(os.Chtimes(w.path("a.yaml"), time.Unix(1, 0), time.Unix(1, 0))) }},
		{"written again", func(w *world) { w.write("a.yaml", configMap("a")) }},
		{"mode", func(w *world) { w.must(os.Chmod(w.path("a.yaml"), 0o400)) }},
		{"other name", func(w *world) { w.rename("a.yaml", "b.yml") }},
		{"other file", func(w *world) { w.write("README.md", "# none") }},
		{"hidden file", func(w *world) { w.write(".b.yaml", "kind: [") }},
		{"empty folder", func(w *world) { w.makeDir("sub") }},
		{"nothing", func(*world) {}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := opened(t, map[string]string{"a.yaml": configMap("a")})
			before, status := w.View(), w.Status()
			test.change(w)
			w.settled()
			w.look(w.ctx, true)
			if w.View() != before {
				t.Error("got a new view, want the old one")
			}
			if w.Status() != status {
				t.Errorf("got status %+v, want %+v", w.Status(), status)
			}
			w.want("a", 0, 0, "")
		})
	}
}
