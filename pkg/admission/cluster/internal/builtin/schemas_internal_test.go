// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/cel/openapi/resolver"
)

func compressed(t *testing.T, content string) []byte {
	t.Helper()
	var data bytes.Buffer
	writer := gzip.NewWriter(&data)
	if _, err := writer.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// TestDamagedSchemas wants an error that nobody takes for a kind without a schema.
func TestDamagedSchemas(t *testing.T) {
	if _, err := unpack([]byte("no gzip")); err == nil {
		t.Error("what is not compressed was read")
	}
	if _, err := unpack(compressed(t, `{"schemas": []}`)); err == nil {
		t.Error("a list was read")
	}
	d, err := unpack(compressed(t, `{"schemas": {"a": {"items": {"$ref": "b"}}, "b": 1, "c": {"items": {"$ref": "d"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string]string{"a": "b", "b": "b", "c": "d", "d": "d"} {
		_, err := d.populated(name)
		if err == nil || errors.Is(err, resolver.ErrSchemaNotFound) || !strings.HasPrefix(err.Error(), "schemas.json.gz: "+part+": ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
