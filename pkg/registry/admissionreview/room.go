// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview

import (
	"bytes"

	"golang.org/x/sync/semaphore"
)

const (
	// maxMemory bounds what the reviews that are judged at the same time take, in bytes,
	// and leastClaim their number, to 1,024.
	maxMemory  = 512 << 20
	leastClaim = maxMemory >> 10

	// What the parts of a body take at most when they are decoded, in bytes: a map, a
	// field of one, an item of a list, a list.
	mapBytes   = 320
	fieldBytes = 96
	itemBytes  = 64
	listBytes  = 64
)

// Room is what the doors that share it have for reviews in flight. It is safe for
// concurrent use.
type Room struct {
	free    *semaphore.Weighted // of maxMemory
	buffers buffers
}

// NewRoom returns a room that is empty.
func NewRoom() *Room { return &Room{free: semaphore.NewWeighted(maxMemory)} }

// claim is the part of a room that a review has.
type claim struct {
	room *Room
	held int64
}

// claim gives a review that is yet to be read as much as its body will take: what it
// says, or the largest there can be. It does not wait.
func (r *Room) claim(contentLength int64) (*claim, bool) {
	if contentLength < 0 || contentLength > MaxBodyBytes {
		contentLength = MaxBodyBytes
	}
	c := &claim{room: r}
	return c, c.resize(contentLength)
}

// resize changes what a review has to a number of bytes, or to all that there is. It
// does not wait: when there is not enough room, it changes nothing and returns false.
func (c *claim) resize(to int64) bool {
	to = min(max(to, leastClaim), maxMemory)
	if to > c.held && !c.room.free.TryAcquire(to-c.held) {
		return false
	}
	if to < c.held {
		c.room.free.Release(c.held - to)
	}
	c.held = to
	return true
}

func (c *claim) release() { c.room.free.Release(c.held) }

// footprint is what a review takes at most until it is judged: its body, and what comes
// of that when it is decoded, which may be fifty times as much.
func footprint(body []byte) int64 {
	count := func(of string) int64 { return int64(bytes.Count(body, []byte(of))) }
	return 2*int64(len(body)) + mapBytes*count("{") + fieldBytes*count(":") + itemBytes*count(",") + listBytes*count("[")
}
