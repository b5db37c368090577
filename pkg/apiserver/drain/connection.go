// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"crypto/tls"
	"sync"
)

// goAway asks the client of an HTTP/2 connection to send no more requests, and promises
// to answer all that it has sent: the last stream is the highest that there can be.
const goAway = "\x00\x00\x08" + "\x07" + "\x00" + "\x00\x00\x00\x00" + "\x7f\xff\xff\xff" + "\x00\x00\x00\x00"

// connections are those of HTTP/2 that are open.
type connections struct {
	mu      sync.Mutex
	open    map[*connection]struct{}
	leaving bool
}

func (c *connections) add(conn *tls.Conn) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[*connection]struct{}{}
	}
	// Who comes late gets one answer, and does not come back at once.
	added := &connection{Conn: conn, late: c.leaving}
	c.open[added] = struct{}{}
	return added
}

func (c *connections) remove(gone *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, gone)
}

// leave asks all clients to send no more requests.
func (c *connections) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
	for one := range c.open {
		go one.leave() // one that reads slowly does not hold up the others
	}
}

// connection is one of HTTP/2. What is written to it is followed frame by frame, so
// that a frame can be put in between.
type connection struct {
	*tls.Conn

	mu      sync.Mutex // held while something is written
	frames  frames
	late    bool // goAway is due after the first answer
	due     bool // goAway is to be written
	written bool // it has been
}

// leave writes goAway, or has it written as soon as that is possible.
func (c *connection) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = true
	if c.frames.between() {
		_ = c.goAway() // who reads from the connection hears of it, too
	}
}

func (c *connection) goAway() error {
	if c.written {
		return nil
	}
	c.written = true
	_, err := c.Conn.Write([]byte(goAway))
	return err
}

// Write writes frames, or parts of them.
func (c *connection) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	place := c.frames.follow(p)
	if c.late && c.frames.answered {
		c.due = true
	}
	if !c.due || c.written || place < 0 {
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p[:place])
	if err != nil {
		return n, err
	}
	if err := c.goAway(); err != nil {
		return n, err
	}
	rest, err := c.Conn.Write(p[place:])
	return n + rest, err
}
