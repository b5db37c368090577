// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// What is in the directory.
const (
	lockFile          = "cluster.lock"
	dataDir           = "data"
	administratorFile = "kubeconfig"
	developerFile     = developer + ".kubeconfig"
)

// place is the directory of one cluster, held while the cluster runs.
type place struct {
	dir  string
	lock *os.File
}

// claim takes a directory that no other cluster uses, and removes what an earlier one
// left. One that is of something else is refused and not touched.
func claim(dir string) (*place, error) {
	if err := checkOwn(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := hold(lock, dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	p := &place{dir: dir, lock: lock}
	if err := errors.Join(os.RemoveAll(p.data()), p.retract()); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return p, nil
}

// checkOwn is nil when a directory is not there, empty, or that of a cluster.
func checkOwn(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	own := len(entries) == 0
	for _, entry := range entries {
		own = own || entry.Name() == lockFile
	}
	if !own {
		return fmt.Errorf("%s holds other files, such as %s, and no cluster: choose another --dir", dir, entries[0].Name())
	}
	return nil
}

// hold locks until the process ends, however it ends, and says in the file who does.
func hold(lock *os.File, dir string) error {
	err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := os.ReadFile(lock.Name()) // for the message only
		return fmt.Errorf("a cluster runs in %s already, by process %s: stop that, or choose another --dir", dir, strings.TrimSpace(string(holder)))
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err = fmt.Fprintln(lock, os.Getpid())
	return err
}

// data is where the files of the programs are.
func (p *place) data() string { return filepath.Join(p.dir, dataDir) }

// publish puts a copy of a kubeconfig where users find it.
func (p *place) publish(kubeconfig, name string) error {
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dir, name), content, 0o600)
}

// retract removes the ways to a cluster that is gone.
func (p *place) retract() error {
	return errors.Join(
		os.RemoveAll(filepath.Join(p.dir, administratorFile)),
		os.RemoveAll(filepath.Join(p.dir, developerFile)),
	)
}

// release lets others have the directory. The data and the logs stay, for those who
// want to look.
func (p *place) release() error {
	return errors.Join(p.retract(), p.lock.Close())
}
