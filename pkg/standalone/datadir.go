// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// maxPIDLength bounds what is read from a lock file that somebody else wrote.
const maxPIDLength = 20

// dataDirLock is the right to use a data dir. The kernel takes it back when the
// process ends, however it ends.
type dataDirLock struct {
	file *fileutil.LockedFile
}

// lockDataDir creates dir for this user only when it is absent, and locks it
// for the life of the process.
func lockDataDir(dir string) (*dataDirLock, error) {
	if err := ensureDataDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "lock")
	file, err := fileutil.TryLockFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("data dir %s is in use by another portcullis-apiserver%s: stop it or choose another --data-dir", dir, lockHolder(path))
	}
	if err != nil {
		return nil, fmt.Errorf("data dir %s cannot be written: %w: give this user the right to write it or choose another --data-dir", dir, cause(err))
	}
	lock := &dataDirLock{file: file}
	if err := lock.record(os.Getpid()); err != nil {
		return nil, errors.Join(
			fmt.Errorf("data dir %s cannot be written: %w: free some space or choose another --data-dir", dir, cause(err)),
			lock.release())
	}
	return lock, nil
}

func ensureDataDir(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("data dir %s cannot be created: %w: choose another --data-dir", dir, cause(err))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("data dir %s cannot be used: %w: choose another --data-dir", dir, cause(err))
	}
	if !info.IsDir() {
		return fmt.Errorf("data dir %s is a file: choose a directory as --data-dir", dir)
	}
	// Whoever can write here can replace the certificate authority, and so become administrator.
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("data dir %s can be written by every user of this machine (mode %#o): run chmod o-w on it or choose another --data-dir", dir, info.Mode().Perm())
	}
	return nil
}

func (l *dataDirLock) record(pid int) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0)
	return err
}

// release gives the data dir back. The file stays, because removing it would let
// two processes lock two files of one name.
func (l *dataDirLock) release() error {
	return l.file.Close()
}

// lockHolder names the process that holds the lock, or nothing when that is not known.
func lockHolder(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPIDLength))
	if err != nil {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}

// cause drops the operation and the path from an error of package os, for
// messages that name the path already.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
