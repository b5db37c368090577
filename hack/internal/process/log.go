// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"os"
	"strings"
	"sync"
)

// maxLastLine bounds what is kept of the line that is being written.
const maxLastLine = 8 << 10

// log takes what the server writes. Until the server is known to own its data
// dir, there is no place for a file, and the log stays in memory. It is safe for
// concurrent use.
type log struct {
	mu     sync.Mutex
	early  bytes.Buffer
	file   *os.File // nil until moveTo
	last   []byte   // the last complete line
	unread []byte   // the beginning of the next one
}

func newLog() *log {
	return &log{}
}

// Write implements io.Writer. It never fails: a full disk must not block the server.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(p) {
		l.unread = append(l.unread, line...)
		if bytes.HasSuffix(line, []byte("\n")) || len(l.unread) > maxLastLine {
			l.last, l.unread = l.unread, nil
		}
	}
	if l.file == nil {
		l.early.Write(p)
		return len(p), nil
	}
	_, _ = l.file.Write(p)
	return len(p), nil
}

func (l *log) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSuffix(string(l.last), "\n")
}

// moveTo makes path, which is emptied, the place of everything written so far
// and from now on.
func (l *log) moveTo(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	l.file = file
	_, err = l.early.WriteTo(file)
	return err
}

// close is called when the server has ended. It may be called more than once.
func (l *log) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
