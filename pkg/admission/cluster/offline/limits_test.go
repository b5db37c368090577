// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	const object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}}\n"
	for _, name := range []string{"a", "b"} {
		content := "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}\n"
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	size := int64(len(object)) - 3
	tests := []struct {
		name   string
		bounds limits
		want   string
	}{
		{name: "just enough", bounds: limits{fileBytes: size, totalBytes: 2 * size, files: 2, objects: 2}},
		{name: "file", bounds: limits{fileBytes: size - 1, totalBytes: 2 * size, files: 2, objects: 2}, want: dir + "/a.yaml: the file has more than 54 bytes; split it\n" + dir + "/b.yaml: the file has more than 54 bytes; split it"},
		{name: "all files", bounds: limits{fileBytes: size, totalBytes: 2*size - 1, files: 2, objects: 2}, want: dir + "/b.yaml: the manifests up to here have more than 109 bytes; remove what no policy reads"},
		{name: "number of files", bounds: limits{fileBytes: size, totalBytes: 2 * size, files: 1, objects: 2}, want: dir + ": more than 1 manifests; put several objects into a file"},
		{name: "number of objects", bounds: limits{fileBytes: size, totalBytes: 2 * size, files: 2, objects: 1}, want: dir + "/b.yaml: the manifests up to here have more than 1 objects; remove what no policy reads"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := load(dir, test.bounds)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
