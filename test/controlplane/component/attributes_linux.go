// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import "syscall"

// attributes keep Ctrl-C for the parent, which then stops its children in order,
// and end the child with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
