// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestLockDataDirCreatesItForOneUser(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "data")
	lock, err := lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.release()

	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "lock"): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: got mode %#o, want %#o", path, got, want)
		}
	}
}

func TestLockDataDirOnlyOnce(t *testing.T) {
	dir := t.TempDir()
	first, err := lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("data dir %s is in use by another portcullis-apiserver (pid %d): stop it or choose another --data-dir", dir, os.Getpid())
	if second, err := lockDataDir(dir); err == nil {
		second.release()
		t.Error("locked twice")
	} else if err.Error() != want {
		t.Errorf("got error\n%s\nwant\n%s", err, want)
	}

	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	third, err := lockDataDir(dir)
	if err != nil {
		t.Fatalf("after a release: %v", err)
	}
	third.release()
}

func TestLockHolder(t *testing.T) {
	tests := []struct {
		name, content, want string
	}{
		{name: "written", content: "123\n", want: " (pid 123)"},
		{name: "not yet written"},
		{name: "something else", content: "hello"},
		{name: "endless", content: "1111111111111111111111111111111111111111111111111111"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := lockHolder(path); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := lockHolder(filepath.Join(t.TempDir(), "absent")); got != "" {
		t.Errorf("no file: got %q, want nothing", got)
	}
}

func TestLockDataDirErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "open")
	readOnly := filepath.Join(t.TempDir(), "readonly")
	for dir, mode := range map[string]os.FileMode{open: 0o777, readOnly: 0o500} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	lockIsDir := t.TempDir()
	if err := os.Mkdir(filepath.Join(lockIsDir, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}

	tests := []struct {
		name, dir, want string
		asRoot          bool // whether root meets the fault too
	}{
		{name: "a file", dir: file, want: "data dir " + file + " is a file: choose a directory as --data-dir", asRoot: true},
		{name: "below a file", dir: file + "/data", want: "data dir " + file + "/data cannot be used: not a directory: choose another --data-dir", asRoot: true},
		{name: "not to be created", dir: "/proc/portcullis", want: "data dir /proc/portcullis cannot be created: no such file or directory: choose another --data-dir", asRoot: true},
		{name: "writable by all", dir: open, want: "data dir " + open + " can be written by every user of this machine (mode 0777): run chmod o-w on it or choose another --data-dir", asRoot: true},
		{name: "no place for the lock", dir: lockIsDir, want: "data dir " + lockIsDir + " cannot be written: is a directory: give this user the right to write it or choose another --data-dir", asRoot: true},
		{name: "not writable", dir: readOnly, want: "data dir " + readOnly + " cannot be written: permission denied: give this user the right to write it or choose another --data-dir"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if os.Geteuid() == 0 && !tc.asRoot {
				t.Skip("root may write everywhere")
			}
			lock, err := lockDataDir(tc.dir)
			if err == nil {
				lock.release()
				t.Fatal("got no error")
			}
			if err.Error() != tc.want {
				t.Errorf("got error\n%s\nwant\n%s", err, tc.want)
			}
		})
	}
}
