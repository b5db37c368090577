// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// emptyFile is the error for a file that held one object.
func emptyFile(name string) string {
	return "DIR/" + name + ": the file is empty: it held 1 object; remove the file to remove its object"
}

// TestDirectoryTruncated empties a file for good: what it held stays in force.
func TestDirectoryTruncated(t *testing.T) {
	tests := []struct{ name, content string }{
		{"nothing", ""},
		{"white space", "\n \t\r\n"},
		{"comments", "# later\n  # more\n"},
		{"an empty document", "---\n"},
		{"empty documents", "%YAML 1.2\n--- # first\n...\n---\n"},
		{"a byte order mark", "\xef\xbb\xbf"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := opened(t, map[string]string{"a.yaml": configMap("a"), "b.yaml": configMap("b")})
			before := w.View()
			w.write("a.yaml", test.content)
			w.settled()
			w.want("a b", 0, 0, "")
			w.clock.Step(patience - time.Second)
			w.look(w.ctx, true)
			w.want("a b", 0, 0, "")
			w.clock.Step(time.Second)
			w.look(w.ctx, false)
			w.want("a b", 0, 1, emptyFile("a.yaml"))
			for range 3 {
				w.clock.Step(period)
				w.look(w.ctx, true)
			}
			w.want("a b", 0, 1, emptyFile("a.yaml"))
			if w.View() != before {
				t.Error("got a new view, want the old one")
			}
			w.remove("a.yaml")
			w.settled()
			w.want("b", 1, 1, "")
		})
	}
}

// TestDirectoryTruncatedFirst writes a file as a shell does: it is truncated
// first, and its content comes some seconds later.
func TestDirectoryTruncatedFirst(t *testing.T) {
	for _, content := range []string{configMap("a"), configMap("z")} {
		w := opened(t, map[string]string{"a.yaml": configMap("a")})
		file, err := os.OpenFile(w.path("a.yaml"), os.O_WRONLY|os.O_TRUNC, 0)
		w.must(err)
		w.settled()
		w.want("a", 0, 0, "")
		w.clock.Step(patience / 2)
		w.look(w.ctx, false)
		w.want("a", 0, 0, "")
		_, err = file.WriteString(content)
		w.must(err)
		w.must(file.Close())
		w.settled()
		if content == configMap("a") {
			w.want("a", 0, 0, "")
		} else {
			w.want("z", 1, 0, "")
		}

		// The time begins anew.
		w.write("a.yaml", "")
		w.settled()
		w.clock.Step(patience / 2)
		w.look(w.ctx, false)
		if w.Status().Err != nil {
			t.Errorf("got error %v before the time has come", w.Status().Err)
		}
	}
}

// TestDirectoryEmptyAllowed has files without content, or without objects, that
// are no fault.
func TestDirectoryEmptyAllowed(t *testing.T) {
	tests := []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"it was empty before", func(w *world) { w.write("empty.yaml", "# still") }, "a b"},
		{"it is new", func(w *world) { w.write("c.yaml", "") }, "a b"},
		{"it is removed and another is empty", func(w *world) {
			w.remove("a.yaml")
			w.write("c.yaml", "")
		}, "b"},
		{"a list without items", func(w *world) { w.write("a.yaml", "apiVersion: v1\nkind: List\nitems: []\n") }, "b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := opened(t, map[string]string{"a.yaml": configMap("a"), "b.yaml": configMap("b"), "empty.yaml": ""})
			test.change(w)
			w.settled()
			w.clock.Step(2 * patience)
			w.look(w.ctx, true)
			if got := configMaps(t, w.View()); got != test.want || w.Status().Err != nil {
				t.Errorf("got ConfigMaps %q and error %v, want %q", got, w.Status().Err, test.want)
			}
		})
	}
}

// TestDirectoryEmptiedMeanwhile empties files while others change or are broken.
func TestDirectoryEmptiedMeanwhile(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a"), "b.yaml": configMap("b"), "c.yaml": configMap("c") + "---\n" + configMap("d")})
	w.rename("a.yaml", "aa.yaml") // the same content, by another path
	w.settled()
	w.want("a b c d", 0, 0, "")
	w.write("aa.yaml", "")
	w.settled()
	w.clock.Step(patience)
	w.write("b.yaml", configMap("bb"))
	w.settled()
	w.want("a b c d", 0, 1, emptyFile("aa.yaml"))
	w.write("b.yaml", "kind: [\n")
	w.write("c.yaml", "")
	w.settled()
	w.want("a b c d", 0, 2, emptyFile("aa.yaml")+"\nDIR/c.yaml: the file is empty: it held 2 objects; remove the file to remove its objects\n"+
		"DIR/b.yaml: document 1, line 1: broken YAML: did not find expected node content")
	w.write("aa.yaml", configMap("a"))
	w.write("b.yaml", configMap("b"))
	w.remove("c.yaml")
	w.settled()
	w.want("a b", 1, 2, "")
}

// TestDirectoryTruncatedDefinition: while a definition is being written, that
// others need it is no failure.
func TestDirectoryTruncatedDefinition(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a")})
	read, missing := w.read, errors.New("no such kind")
	w.Directory.read = func(found *listing) *outcome {
		result := read(found)
		if len(result.blank) > 0 {
			result.view, result.err = nil, missing
		}
		return result
	}
	w.write("a.yaml", "")
	w.settled()
	w.want("a", 0, 0, "")
	w.clock.Step(patience)
	w.look(w.ctx, false)
	w.want("a", 0, 1, emptyFile("a.yaml")+"\nno such kind")
}

// TestRunTruncated says what is wrong without another event.
func TestRunTruncated(t *testing.T) {
	w := opened(t, map[string]string{"a.yaml": configMap("a")})
	watching := newWatch(w.dir)
	defer watching.close()
	w.write("a.yaml", "")
	w.follows(func(ctx context.Context) { w.follow(ctx, watching) })
	began := w.clock.Now()
	waitFor(t, "the failure", func() bool {
		if w.clock.HasWaiters() {
			w.clock.Step(settle)
		}
		return w.Status().Err != nil
	})
	if took := w.clock.Since(began); took < patience {
		t.Errorf("a failure after %s, want it after %s", took, patience)
	}
	if got := configMaps(t, w.View()); got != "a" {
		t.Errorf("got ConfigMaps %q, want a", got)
	}
	w.write("a.yaml", strings.ReplaceAll(configMap("b"), "\n", " \n"))
	waitFor(t, "the ConfigMap b", func() bool {
		w.clock.Step(settle)
		return configMaps(t, w.View()) == "b"
	})
}
