// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package headroom lets the heap of a process grow before garbage is collected. It
// does not know what the process does.
package headroom

import (
	"os"
	"runtime"
	"runtime/debug"
)

// Bytes is by how much the heap may grow, beyond the doubling that Go grants it,
// before garbage is collected.
const Bytes = 64 << 20

// leastLimit is the lowest GOMEMLIMIT with room for the part that is held.
const leastLimit = 8 * Bytes

// Hold makes garbage collections rarer while the heap is small: they come when the
// heap has doubled, and that of a server with few policies doubles many times a
// second under load. The heap gets a part that is never written to, and so is no
// memory of the machine. However large the heap, the process needs at most Bytes
// more than it would without. Who sets GOGC, or GOMEMLIMIT to less than eight times
// Bytes, has decided otherwise. The returned function gives the part back.
func Hold() (release func()) {
	if os.Getenv("GOGC") != "" || debug.SetMemoryLimit(-1) < leastLimit {
		return func() {}
	}
	held := make([]byte, Bytes)
	return func() { runtime.KeepAlive(held) }
}
