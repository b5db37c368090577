// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestDirectoryBroken(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a"), "b.yaml": configMap("b")})
	first := w.View()
	const brackets = "DIR/a.yaml: document 2, line 3: broken YAML: did not find expected node content"

	// What is sound in the other files is not in force either.
	w.write("a.yaml", configMap("new")+"---\nkind: [\n")
	w.write("c.yaml", configMap("c"))
	w.settled()
	w.want("a b", 0, 1, brackets)
	for range 3 {
		w.clock.Step(period)
		w.settled()
		w.look(w.ctx, true)
	}
	w.want("a b", 0, 1, brackets)
	if line := (*w.log)[0]; !strings.Contains(line, "a.yaml: document 2, line 3") || !strings.Contains(line, "stay in force") {
		t.Errorf("the log does not say what is broken and what happens: %s", line)
	}

	// The state is another one, but is broken still.
	w.write("b.yaml", configMap("a"))
	w.settled()
	w.want("a b", 0, 2, brackets)

	w.write("a.yaml", configMap("d"))
	w.write("b.yaml", configMap("b"))
	w.settled()
	w.want("b c d", 1, 2, "")

	// Mended by going back: the view is the old one.
	second := w.View()
	if second == first {
		t.Error("got the first view, want a new one")
	}
	w.write("c.yaml", "apiVersion: a.example/v1\nkind: Gadget\nmetadata: {name: g}\n")
	w.settled()
	w.want("b c d", 1, 3, `DIR/c.yaml: document 1, line 1: kind: Not found: "Gadget": no such kind in a.example/v1; add its CustomResourceDefinition`)
	w.write("c.yaml", configMap("c"))
	w.clock.Step(time.Hour)
	w.settled()
	w.want("b c d", 2, 3, "")
	if w.View() != second {
		t.Error("got a new view for the content that was in force")
	}
	if got := w.Status().LoadedAt; !got.Equal(w.clock.Now()) {
		t.Errorf("loaded at %v, want %v", got, w.clock.Now())
	}
}

func TestDirectoryVanished(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a")})
	w.rename("", "../away")
	w.settled()
	absent := "directory of manifests: open DIR: no such file or directory"
	w.want("a", 0, 1, absent)
	w.settled()
	w.want("a", 0, 1, absent)

	// The place where something was mounted is an empty directory.
	w.makeDir("")
	w.settled()
	w.want("a", 0, 2, "DIR: "+errVanished.Error())
	w.makeDir("sub")
	w.settled()
	w.want("a", 0, 2, "DIR: "+errVanished.Error())

	w.remove("")
	w.rename("../away", "")
	w.settled()
	w.want("a", 1, 2, "")

	// What is mounted anew has another identity, even with the same content.
	w.write("../next/a.yaml", configMap("a"))
	w.rename("", "../away")
	w.rename("../next", "")
	w.settled()
	w.want("a", 1, 2, "")
	w.remove("a.yaml")
	w.settled()
	w.want("", 2, 2, "")
}

func TestDirectoryEmptyByFile(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a")})
	w.write("../next/none.yaml", "# nothing\n")
	w.rename("", "../away")
	w.rename("../next", "")
	w.settled()
	w.want("", 1, 0, "")
}

func TestDirectoryLimits(t *testing.T) {
	tests := []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"file", func(w *world) { w.write("a.yaml", strings.Repeat("#", 1001)) }, "DIR/a.yaml: the file has more than 1000 bytes; split it"},
		{"all files", func(w *world) {
			for i := range 6 {
				w.write(fmt.Sprintf("%d.yaml", i), strings.Repeat("#", 999))
			}
		}, "DIR/5.yaml: the manifests up to here have more than 5000 bytes; remove what no policy reads"},
		{"number of files", func(w *world) {
			for i := range 20 {
				w.write(fmt.Sprintf("%d.yaml", i), "")
			}
		}, "DIR: more than 20 manifests; put several objects into a file"},
		{"number of objects", func(w *world) {
			w.write("a.yaml", strings.Repeat(configMap("a")+"---\n", 11))
		}, "DIR/a.yaml: the manifests up to here have more than 10 objects; remove what no policy reads"},
		{"depth", func(w *world) { w.makeDir("1/2/3/4") }, "DIR/1/2/3/4: directories are nested more than 3 levels deep; move the manifests up"},
		{"number of folders", func(w *world) {
			for i := range 20 {
				w.makeDir(fmt.Sprintf("%02d", i))
			}
		}, "DIR/19: more than 20 directories; put several manifests into one"},
		{"link to a directory", func(w *world) { w.link(".", "l") }, "DIR/l: links to directories are not followed; copy the directory or name it itself"},
		{"link to nothing", func(w *world) { w.link("nothing", "l.yaml") }, "stat DIR/l.yaml: no such file or directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := opened(t, map[string]string{"a.yaml": configMap("a")})
			test.change(w)
			w.settled()
			w.want("a", 0, 1, test.want)
			w.settled()
			w.want("a", 0, 1, test.want)
		})
	}
}
