// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

// What is needed of the layout of frames; see RFC 9113, sections 4.1 and 6.
const (
	headerSize = 9

	typeHeaders      = 0x1
	typePushPromise  = 0x5
	typeContinuation = 0x9
	flagEndHeaders   = 0x4
)

// frames follows the frames of one direction of an HTTP/2 connection.
type frames struct {
	header [headerSize]byte
	have   int // bytes of the header that have been seen
	left   int // bytes of the payload that have not
	begun  bool
	// open says that the last frame is continued by the next one, which must follow
	// at once.
	open bool
	// answered says that there was an answer to a request.
	answered bool
}

// between says whether another frame may be put in here. The first one must be that
// of the server, its settings.
func (f *frames) between() bool {
	return f.begun && f.have == 0 && f.left == 0 && !f.open
}

// follow looks at bytes that come next, and returns the last place in them where
// another frame may be put in, or -1.
func (f *frames) follow(p []byte) (place int) {
	place = -1
	for at := 0; at < len(p); {
		if f.left > 0 {
			taken := min(f.left, len(p)-at)
			f.left -= taken
			at += taken
		} else {
			taken := copy(f.header[f.have:], p[at:])
			f.have += taken
			at += taken
			if f.have == headerSize {
				f.begin()
			}
		}
		if f.between() {
			place = at
		}
	}
	return place
}

// begin is called with each header.
func (f *frames) begin() {
	f.have, f.begun = 0, true
	f.left = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
	switch f.header[3] {
	case typeHeaders:
		f.answered = true
		fallthrough
	case typePushPromise, typeContinuation:
		f.open = f.header[4]&flagEndHeaders == 0
	}
}
