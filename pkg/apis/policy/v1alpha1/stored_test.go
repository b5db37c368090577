// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/install"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

var update = flag.Bool("update", false, "write the stored bytes of objects that have none yet; existing files are never changed")

const storedDir = "testdata/stored"

// TestStoredBytes holds what has been written to somebody's etcd: every file must
// be read as it was meant, for ever, and today's server must write the same bytes.
func TestStoredBytes(t *testing.T) {
	codec := storageCodec(t)
	want := storedObjects()
	maps.Copy(want, formerObjects())
	for name, object := range want {
		if *update {
			addStored(t, codec, filepath.Join(storedDir, name), object)
		}
		t.Run(name, func(t *testing.T) {
			stored, err := os.ReadFile(filepath.Join(storedDir, name))
			if err != nil {
				t.Fatalf("%v (go test -update adds it)", err)
			}
			decoded, err := runtime.Decode(codec, stored)
			if err != nil {
				t.Fatalf("decode: %v", err)
			}
			if !apiequality.Semantic.DeepEqual(decoded, object) {
				t.Errorf("decoded object differs (-want +got):\n%s", cmp.Diff(object, decoded))
			}
			encoded, err := runtime.Encode(codec, decoded)
			if err != nil {
				t.Fatalf("encode: %v", err)
			}
			if !bytes.Equal(encoded, stored) {
				t.Errorf("encoded again, the bytes differ (-want +got):\n%s", cmp.Diff(string(stored), string(encoded)))
			}
		})
	}
	files, err := os.ReadDir(storedDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := want[file.Name()]; !ok {
			t.Errorf("%s: no object says what it must be read as", file.Name())
		}
	}
}

// TestStoredObjectsAreFull fails when a type has grown a field that no stored
// file has: a new file is due, beside the old one, whose object becomes a former one.
func TestStoredObjectsAreFull(t *testing.T) {
	for name, object := range storedObjects() {
		for _, path := range emptyFields(reflect.ValueOf(object).Elem(), "") {
			t.Errorf("%s: field %s is not set", name, path)
		}
	}
}

func storageCodec(t *testing.T) runtime.Codec {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := install.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)
}

func addStored(t *testing.T, codec runtime.Codec, path string, object runtime.Object) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	encoded, err := runtime.Encode(codec, object)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(storedDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, encoded, 0o644); err != nil {
		t.Fatal(err)
	}
}

// emptyFields lists the fields below v that hold nothing. Only the first item of
// a list is looked at.
func emptyFields(v reflect.Value, path string) []string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return []string{path}
		}
		return emptyFields(v.Elem(), path)
	case reflect.Slice:
		if v.Len() == 0 {
			return []string{path}
		}
		return emptyFields(v.Index(0), path+"[0]")
	case reflect.Struct:
		if v.Type().PkgPath() == "time" {
			return emptyLeaf(v, path)
		}
		var empty []string
		for i := range v.NumField() {
			field := path + "." + v.Type().Field(i).Name
			if !neverStored(field) {
				empty = append(empty, emptyFields(v.Field(i), field)...)
			}
		}
		return empty
	default:
		return emptyLeaf(v, path)
	}
}

func emptyLeaf(v reflect.Value, path string) []string {
	if v.IsZero() {
		return []string{path}
	}
	return nil
}

// neverStored names the fields that storage empties, or that belong to namespaced
// objects.
func neverStored(path string) bool {
	switch path {
	case ".TypeMeta", ".ObjectMeta.Namespace", ".ObjectMeta.SelfLink", ".ObjectMeta.ResourceVersion":
		return true
	}
	return false
}
