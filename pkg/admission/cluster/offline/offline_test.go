// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.a.example}
spec:
  group: a.example
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions: [{name: v1, served: true, storage: true}]
`

// write makes a directory with the given files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func names(t *testing.T, view cluster.View, kind schema.GroupVersionKind) []string {
	t.Helper()
	objects, err := view.Objects(context.Background(), cluster.Selection{Kind: kind, Selector: labels.Everything()})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, obj := range objects {
		found = append(found, strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/"))
	}
	return found
}

func TestEmpty(t *testing.T) {
	empty := write(t, nil)
	for _, dir := range []string{"", empty} {
		view, err := offline.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"default", "kube-node-lease", "kube-public", "kube-system"}
		if got := names(t, view, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		namespace, err := view.Namespace(context.Background(), "default")
		if err != nil || namespace.Labels["kubernetes.io/metadata.name"] != "default" {
			t.Errorf("got %v, %v, want the namespace with its label", namespace, err)
		}
		_, err = view.Namespace(context.Background(), "a")
		if want := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a"); err == nil || err.Error() != want.Error() || !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := write(t, map[string]string{
		// The definition is in the last file.
		"a.yaml":           "apiVersion: a.example/v1\nkind: Gadget\nmetadata: {name: g}\n",
		"b.yml":            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b1}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b2, namespace: x}}\n",
		"c/d/e.json":       `{"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "c"}}]}`,
		"z.yaml":           "# nothing\n---\n" + gadgets,
		"README.md":        "kind: [",
		".hidden/a.yaml":   "kind: [",
		".hidden.yaml":     "kind: [",
		"empty.yaml":       "",
		"c/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, labels: {a: b}}\n",
	})
	if err := os.Symlink(filepath.Join(dir, ".hidden", "linked"), filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".hidden", "linked"), []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: linked}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	view, err := offline.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, view, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}), []string{"default/b1", "default/c", "default/linked", "x/b2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := names(t, view, schema.GroupVersionKind{Group: "a.example", Version: "v1", Kind: "Gadget"}), []string{"default/g"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	namespace, err := view.Namespace(context.Background(), "kube-system")
	if err != nil || namespace.Labels["a"] != "b" {
		t.Errorf("got %v, %v, want the given namespace", namespace, err)
	}
}

func TestLoadErrors(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  []string // each begins with a file below DIR, or with DIR
	}{
		{
			name: "all broken files at once",
			files: map[string]string{
				"a.yaml":   "kind: ConfigMap\n---\nkind: [\n",
				"b.json":   `{"apiVersion": "v1", "kind": "ConfigMap", "kind": "Secret"}`,
				"c/d.yaml": "apiVersion: v1\nkind: A\nkind: B\n---\n- a\n",
				// Its definition may be in one of the others.
				"gadget.yaml": "{apiVersion: a.example/v1, kind: Gadget, metadata: {name: a}}",
			},
			want: []string{
				"a.yaml: document 2, line 3: broken YAML: did not find expected node content",
				`b.json: document 1, line 1: key "kind" is set twice; keep one of them`,
				`c/d.yaml: document 1, line 3: key "kind" is set twice; keep one of them`,
				"c/d.yaml: document 2, line 5: found a list; an object with apiVersion and kind is needed",
				"a.yaml: document 1, line 1: apiVersion: Required value: name the group and version, for example apps/v1",
				"a.yaml: document 1, line 1: metadata.name: Required value: give the object a name",
			},
		},
		{
			name: "same object in two files",
			files: map[string]string{
				"a.yaml": "# c\n---\n# c\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
				"b.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}\n",
			},
			want: []string{`b.yaml: document 1, line 1, items[0]: metadata.name: Duplicate value: "default/a": ConfigMap is given twice; keep one of them: the first is in DIR/a.yaml: document 1, line 4`},
		},
		{
			name:  "unknown kind",
			files: map[string]string{"a.yaml": "\n\napiVersion: a.example/v1\nkind: Gadget\nmetadata: {name: a}\n"},
			want:  []string{`a.yaml: document 1, line 3: kind: Not found: "Gadget": no such kind in a.example/v1; add its CustomResourceDefinition`},
		},
		{
			name:  "broken definition",
			files: map[string]string{"a.yaml": "apiVersion: a.example/v1\nkind: Gadget\nmetadata: {name: a}\n", "b.yaml": strings.Replace(gadgets, "Namespaced", "Everywhere", 1)},
			want:  []string{`b.yaml: document 1, line 1: spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced"`},
		},
		{
			name:  "too large",
			files: map[string]string{"a.yaml": "#" + strings.Repeat(" ", 16<<20), "b.yaml": "{"},
			want: []string{
				"a.yaml: the file has more than 16777216 bytes; split it",
				"b.yaml: document 1, line 1: broken YAML: did not find expected node content",
			},
		},
		{
			name:  "many faults",
			files: map[string]string{"a.yaml": strings.Repeat("---\n{apiVersion: v1, kind: A, metadata: {name: a}}\n", 101)},
			want: append(strings.Split(unknown(100), "\n")[:100],
				"DIR: and 1 more faults"),
		},
		{
			name:  "nested too deep",
			files: map[string]string{strings.Repeat("d/", 33) + "a.yaml": ""},
			want:  []string{strings.Repeat("d/", 32) + "d: directories are nested more than 32 levels deep; move the manifests up"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := write(t, test.files)
			_, err := offline.Load(dir)
			if err == nil {
				t.Fatal("got no error")
			}
			var want []string
			for _, line := range test.want {
				if !strings.HasPrefix(line, "DIR") {
					line = "DIR/" + line
				}
				want = append(want, strings.ReplaceAll(line, "DIR", dir))
			}
			if got, want := err.Error(), strings.Join(want, "\n"); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func unknown(documents int) string {
	var text strings.Builder
	for number := range documents {
		fmt.Fprintf(&text, "a.yaml: document %d, line %d: kind: Not found: \"A\": no such kind in v1; add its CustomResourceDefinition\n", number+1, 2*number+2)
	}
	return text.String()
}

func TestLoadUnreadable(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": ""})
	if _, err := offline.Load(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "directory of manifests: ") {
		t.Errorf("got %v, want a directory that does not exist", err)
	}
	if _, err := offline.Load(filepath.Join(dir, "a.yaml")); err == nil {
		t.Error("got no error for a file in place of a directory")
	}
	links := write(t, nil)
	if err := os.Symlink(dir, filepath.Join(links, "l")); err != nil {
		t.Fatal(err)
	}
	_, err := offline.Load(links)
	if want := links + "/l: links to directories are not followed; copy the directory or name it itself"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := os.Rename(filepath.Join(links, "l"), filepath.Join(links, "l.yaml")); err != nil {
		t.Fatal(err)
	}
	_, err = offline.Load(links)
	if want := links + "/l.yaml: not a regular file; only files are read, and links to files"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNew(t *testing.T) {
	objects, err := manifest.Decode([]byte(gadgets + "---\n{apiVersion: a.example/v1, kind: Gadget, metadata: {name: a}}"))
	if err != nil {
		t.Fatal(err)
	}
	view, err := offline.New(objects)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, view, schema.GroupVersionKind{Group: "a.example", Version: "v1", Kind: "Gadget"}), []string{"default/a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err = offline.New(objects[1:])
	var errs overlay.Errors
	if !errors.As(err, &errs) || len(errs) != 1 || errs[0].Index != 0 {
		t.Errorf("got %v, want an error of index 0", err)
	}
}

func BenchmarkNew(b *testing.B) {
	objects, err := manifest.Decode([]byte(gadgets + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n{apiVersion: a.example/v1, kind: Gadget, metadata: {name: a}}"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := offline.New(slices.Clone(objects)); err != nil {
			b.Fatal(err)
		}
	}
}
