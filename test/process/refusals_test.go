// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestRefusals pins what a user reads who makes one of the common mistakes: one
// line on stderr, nothing else, and exit code 1.
func TestRefusals(t *testing.T) {
	running := filepath.Join(t.TempDir(), "data")
	first := launchReady(t, running)

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	readOnly := filepath.Join(t.TempDir(), "readonly")
	if err := os.Mkdir(readOnly, 0o500); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	free := filepath.Join(t.TempDir(), "data")

	tests := []struct {
		name    string
		dataDir string
		flags   []string
		want    string
		notRoot bool // root does not meet this fault
	}{
		{
			name: "second server on the data dir", dataDir: running, flags: []string{"--secure-port=0"},
			want: fmt.Sprintf("data dir %s is in use by another portcullis-apiserver (pid %d): stop it or choose another --data-dir", running, first.command.Process.Pid),
		},
		{
			name: "data dir is a file", dataDir: file,
			want: "data dir " + file + " is a file: choose a directory as --data-dir",
		},
		{
			name: "data dir cannot be created", dataDir: "/proc/portcullis",
			want: "data dir /proc/portcullis cannot be created: no such file or directory: choose another --data-dir",
		},
		{
			name: "data dir cannot be written", dataDir: readOnly, notRoot: true,
			want: "data dir " + readOnly + " cannot be written: permission denied: give this user the right to write it or choose another --data-dir",
		},
		{
			name: "port taken", dataDir: free, flags: []string{"--secure-port=" + port},
			want: "port " + port + " on address 127.0.0.1 is in use by another process: choose another --secure-port, or --secure-port 0 for a free one",
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
			if tc.notRoot && os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			s := launch(t, tc.dataDir, tc.flags...)
			if code := s.waitExit(t); code != 1 {
				t.Errorf("got exit code %d, want 1", code)
			}
			if got, want := s.stderr.String(), "error: "+tc.want+"\n"; got != want {
				t.Errorf("got stderr\n%s\nwant\n%s", got, want)
			}
			if got := s.stdout.String(); got != "" {
				t.Errorf("got stdout %q, want none", got)
			}
		})
	}
	if !first.ready(t.Context()) {
		t.Error("the first server is no longer ready")
	}
}
