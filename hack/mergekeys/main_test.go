// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.go")
	verify := []string{"--verify", "--file", file}
	if err := run(verify); err == nil {
		t.Error("a file that is not there was found up to date")
	}
	if err := run([]string{"--file", file}); err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"v1", "Pod", `, `keys: []key{{"containerPort", ""}, {"protocol", "TCP"}}`, "DO NOT EDIT"} {
		if !strings.Contains(string(code), want) {
			t.Errorf("the code lacks %s", want)
		}
	}
	for range 5 {
		// Maps have no order, but the table has.
		if err := run(verify); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, append(code, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(verify); err == nil || !strings.Contains(err.Error(), "make update-mergekeys") {
		t.Errorf("got %v for a file that is not up to date", err)
	}
	for _, args := range [][]string{nil, {"--file", file, "more"}, {"--unknown"}} {
		if err := run(args); err == nil {
			t.Errorf("no error for %v", args)
		}
	}
}
