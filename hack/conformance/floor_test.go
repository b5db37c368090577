// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

const text = `# A comment.

cel/seed.yaml 96.3
cel/dev.yaml 100.0
`

func TestFloor(t *testing.T) {
	tests := []struct {
		name     string
		measured map[string]int
		failure  string
		raised   string
	}{
		{
			name:     "just reached",
			measured: map[string]int{"cel/seed.yaml": 963, "cel/dev.yaml": 1000},
			raised:   text,
		},
		{
			name:     "better",
			measured: map[string]int{"cel/seed.yaml": 970, "cel/dev.yaml": 1000},
			raised:   "# A comment.\n\ncel/seed.yaml 97.0\ncel/dev.yaml 100.0\n",
		},
		{
			name:     "worse",
			measured: map[string]int{"cel/seed.yaml": 962, "cel/dev.yaml": 999},
			failure:  "cel/seed.yaml: 96.2 percent pass, at least 96.3 must\ncel/dev.yaml: 99.9 percent pass, at least 100.0 must",
			raised:   text,
		},
		{
			name:     "nothing judged",
			measured: map[string]int{"cel/seed.yaml": 963},
			failure:  "cel/dev.yaml: no case was judged",
			raised:   text,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f, err := parseFloor(text)
			if err != nil {
				t.Fatal(err)
			}
			failure := ""
			if err := f.check(tc.measured); err != nil {
				failure = err.Error()
			}
			if failure != tc.failure {
				t.Errorf("check fails with\n%s\nwant\n%s", failure, tc.failure)
			}
			if raised := f.raisedTo(tc.measured); raised != tc.raised {
				t.Errorf("raised to\n%s\nwant\n%s", raised, tc.raised)
			}
		})
	}
}

func TestFaultyFloors(t *testing.T) {
	for _, faulty := range []string{"", "# none\n", "cel/seed.yaml\n", "cel/seed.yaml 96\n", "cel/seed.yaml 100.1\n", "cel/seed.yaml -1.0\n", "cel/seed.yaml 96.3 \n"} {
		if f, err := parseFloor(faulty); err == nil {
			t.Errorf("%q is taken as %v", faulty, f)
		}
	}
}

func TestSharesAreRoundedDown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	report := `{"files": [{"name": "a", "passed": 1999, "failed": 1, "skipped": 7}, {"name": "b", "skipped": 3}]}`
	if err := os.WriteFile(path, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	shares, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(shares) != 1 || shares["a"] != 999 {
		t.Errorf("got %v, want a with 999 only", shares)
	}
}
