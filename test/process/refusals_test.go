// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRefusals pins what a user reads who starts a server with what it cannot use,
// beside the mistakes of TestBadInputs: one line on stderr and nothing else.
func TestRefusals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	free := filepath.Join(t.TempDir(), "data")
	tests := []struct {
		name    string
		dataDir string
		flags   []string
		want    string
	}{
		{
			name: "data dir is a file", dataDir: file,
			want: "data dir " + file + " is a file: choose a directory as --data-dir",
		},
		{
			name: "data dir cannot be created", dataDir: "/proc/portcullis",
			want: "data dir /proc/portcullis cannot be created: no such file or directory: choose another --data-dir",
		},
		{
			name: "several bad flags", dataDir: free, flags: []string{"--bind-address=localhost", "--secure-port=70000"},
			want: `[--bind-address "localhost" is not an IP address: use one such as 127.0.0.1, or 0.0.0.0 for all, --secure-port 70000 is not a port: use 1 to 65535, or 0 for a free one]`,
		},
		{
			name: "unknown flag", dataDir: free, flags: []string{"--port=1"},
			want: "unknown flag: --port",
		},
		{
			name: "argument", dataDir: free, flags: []string{"serve"},
			want: `unknown command "serve" for "portcullis-apiserver"`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := launch(t, tc.dataDir, tc.flags...).refusal(t)
			if want := "error: " + tc.want + "\n"; got != want {
				t.Errorf("got stderr\n%s\nwant\n%s", got, want)
			}
		})
	}
}
