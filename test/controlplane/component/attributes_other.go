// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package component

import "syscall"

// attributes keep Ctrl-C for the parent, which then stops its children in order. A
// parent that is killed leaves them behind on this system.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
