// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/net/http2"
)

// TestFrames: a frame may be put in after each frame, unless that is continued, however
// the bytes are cut.
func TestFrames(t *testing.T) {
	var stream bytes.Buffer
	framer := http2.NewFramer(&stream, nil)
	framer.AllowIllegalWrites = true
	var want []int // places between frames
	for _, frame := range []struct {
		between bool
		write   func() error
	}{
		{true, func() error { return framer.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20}) }},
		{true, framer.WriteSettingsAck},
		{true, func() error { return framer.WriteData(1, false, make([]byte, 300)) }},
		{true, func() error { return framer.WriteData(1, true, nil) }},
		{false, func() error {
			return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte("begun")})
		}},
		{false, func() error { return framer.WriteContinuation(3, false, []byte("continued")) }},
		{true, func() error { return framer.WriteContinuation(3, true, []byte("ended")) }},
		{true, func() error {
			return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, EndHeaders: true, BlockFragment: []byte("whole")})
		}},
		{true, func() error { return framer.WriteGoAway(5, http2.ErrCodeNo, nil) }},
	} {
		if err := frame.write(); err != nil {
			t.Fatal(err)
		}
		if frame.between {
			want = append(want, stream.Len())
		}
	}
	all := stream.Bytes()
	for size := 1; size <= len(all); size++ {
		f := &frames{}
		if f.between() {
			t.Fatal("a frame may be put in before the settings")
		}
		last := -1
		for at := 0; at < len(all); at += size {
			part := all[at:min(at+size, len(all))]
			if place := f.follow(part); place >= 0 {
				last = at + place
				if !slices.Contains(want, last) {
					t.Fatalf("in parts of %d bytes, a frame may be put in at %d; want one of %v", size, last, want)
				}
			}
			end := at + len(part)
			if between := f.between(); between != slices.Contains(want, end) {
				t.Fatalf("in parts of %d bytes, a frame may be put in at %d: %v; want one of %v", size, end, between, want)
			}
			if size == 1 && f.answered != (end >= want[3]+headerSize) {
				t.Fatalf("at %d there was an answer: %v", end, f.answered)
			}
		}
		if last != len(all) {
			t.Errorf("in parts of %d bytes, the last place is %d, want %d", size, last, len(all))
		}
	}
}

func TestGoAwayIsAFrame(t *testing.T) {
	frame, err := http2.NewFramer(nil, bytes.NewReader([]byte(goAway))).ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	got, ok := frame.(*http2.GoAwayFrame)
	if !ok || got.LastStreamID != 1<<31-1 || got.ErrCode != http2.ErrCodeNo || len(got.DebugData()) != 0 {
		t.Errorf("got %v", frame)
	}
}
