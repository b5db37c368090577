// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"runtime"
)

// headroomBytes is by how much the heap may grow, beyond the doubling that Go
// grants it, before garbage is collected.
const headroomBytes = 32 << 20

// holdHeadroom makes garbage collections rarer while the heap is small: they come
// when the heap has doubled, and that of a server with few policies doubles many
// times a second under load. The heap gets a part that is never written to, and
// so is no memory of the machine. However large the heap, the process needs at
// most headroomBytes more than it would without. Who sets GOGC or GOMEMLIMIT has
// decided otherwise. The returned function gives the part back.
func holdHeadroom() (release func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	headroom := make([]byte, headroomBytes)
	return func() { runtime.KeepAlive(headroom) }
}
