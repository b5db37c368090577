// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview

import (
	"bytes"
	"sync"
)

// maxKeptBytes is the largest buffer that is kept for another review. What is
// kept goes with the next garbage collections.
const maxKeptBytes = 64 << 10

// buffers are those that bodies are read into. The zero value is ready for use. It
// is safe for concurrent use.
type buffers struct{ pool sync.Pool }

// get returns an empty buffer.
func (b *buffers) get() *bytes.Buffer {
	if buffer, ok := b.pool.Get().(*bytes.Buffer); ok {
		buffer.Reset()
		return buffer
	}
	return &bytes.Buffer{}
}

// put takes a buffer back. Nobody may hold any of its bytes.
func (b *buffers) put(buffer *bytes.Buffer) {
	if buffer.Cap() <= maxKeptBytes {
		b.pool.Put(buffer)
	}
}
