// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClaim: what an earlier cluster left goes, what others have stays.
func TestClaim(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	first, err := claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim(dir); err == nil || !strings.Contains(err.Error(), "choose another --dir") {
		t.Errorf("got %v, want a refusal while the first holds it", err)
	}
	stale, mine := filepath.Join(first.data(), "etcd"), filepath.Join(dir, "mine.yaml")
	if err := os.Mkdir(first.data(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{stale, mine, filepath.Join(dir, administratorFile)} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.lock.Close(); err != nil { // as when its process is killed
		t.Fatal(err)
	}
	second, err := claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.release()
	for file, want := range map[string]bool{stale: false, filepath.Join(dir, administratorFile): false, mine: true} {
		if _, err := os.Stat(file); (err == nil) != want {
			t.Errorf("%s: got %v, want it there: %t", file, err, want)
		}
	}
}

func TestClaimRefusesForeign(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "data")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := claim(dir); err == nil || !strings.Contains(err.Error(), "holds other files, such as data") {
		t.Errorf("got %v, want a refusal that names a file", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v, want the directory as it was", entries, err)
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"--replicas", "0"}, {"here"}, {"--nothing"}} {
		if o, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v: got %v, want an error", args, o)
		}
	}
}
