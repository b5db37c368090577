// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const widgets = `{"components": {"schemas": {
  "Widget": {
    "description": "A widget.", "type": "object", "required": ["description"],
    "x-kubernetes-group-version-kind": [{"group": "a.example", "version": "v1", "kind": "Widget"}],
    "properties": {
      "description": {"description": "A field of this name.", "type": "string", "default": ""},
      "parts": {"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/Part"}], "description": "A part."}},
      "sizes": {"type": "object", "additionalProperties": {"type": "integer", "description": "A size."}}
    }
  },
  "Part": {"oneOf": [{"type": "string"}, {"type": "integer", "description": "A number."}], "format": "int-or-string"}
}}}`

const want = `{"kinds":{"a.example/v1, Kind=Widget":"Widget"},"schemas":{` +
	`"Part":{"format":"int-or-string","oneOf":[{"type":"string"},{"type":"integer"}]},` +
	`"Widget":{"type":"object","required":["description"],"properties":{` +
	`"description":{"type":"string","default":""},` +
	`"parts":{"type":"array","items":{"allOf":[{"$ref":"Part"}]}},` +
	`"sizes":{"type":"object","additionalProperties":{"type":"integer"}}}}}}`

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	found, err := read(folder(t, map[string]string{
		"apis__a.example__v1_openapi.json":      widgets,
		"apis__b.example__v1_openapi.json":      strings.ReplaceAll(widgets, "A ", "Some "), // the same but for words
		"apis__a.example__v1beta1_openapi.json": "not read",
		"apis__a.example_openapi.json":          "not read",
		"version_openapi.json":                  "not read",
	}))
	if err != nil {
		t.Fatal(err)
	}
	content, err := found.encode()
	if err != nil {
		t.Fatal(err)
	}
	if string(content) != want {
		t.Errorf("got  %s\nwant %s", content, want)
	}
}

func TestReadFaults(t *testing.T) {
	const one, other = "api__v1_openapi.json", "apis__b.example__v2_openapi.json"
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"none":   {map[string]string{"api_openapi.json": widgets}, "no documents of stable versions"},
		"broken": {map[string]string{one: "{"}, one + ": unexpected end"},
		"differs": {
			map[string]string{one: widgets, other: strings.Replace(widgets, `"type": "integer", "description": "A size."`, `"type": "string"`, 1)},
			other + ": Widget differs",
		},
		"two names": {
			map[string]string{one: widgets, other: strings.Replace(widgets, `"Widget":`, `"Gadget":`, 1)},
			other + ": a.example/v1, Kind=Widget is both Widget and Gadget",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := read(folder(t, test.files))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestBring(t *testing.T) {
	documents := folder(t, map[string]string{"api__v1_openapi.json": widgets})
	file := filepath.Join(t.TempDir(), "schemas.json.gz")
	if err := bring(file, documents, true); err == nil {
		t.Error("a file that is missing was accepted")
	}
	if err := bring(file, documents, false); err != nil {
		t.Fatal(err)
	}
	if err := bring(file, documents, true); err != nil {
		t.Errorf("what was written is refused: %v", err)
	}
	if got, err := readCompressed(file); err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	// The same content may be compressed in another way.
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := gzip.NewWriterLevel(out, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write([]byte(want)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := bring(file, documents, true); err != nil {
		t.Errorf("the same content is refused: %v", err)
	}
	changed := folder(t, map[string]string{"api__v1_openapi.json": strings.ReplaceAll(widgets, "sizes", "weights")})
	if err := bring(file, changed, true); err == nil || !strings.Contains(err.Error(), "make update-openapi") {
		t.Errorf("got %v, want that the file is out of date", err)
	}
}
