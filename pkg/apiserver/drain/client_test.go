// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// connection is that of a client of HTTP/2 which is slow to notice what the server says.
type connection struct {
	framer *http2.Framer
}

func connect(t *testing.T, w *world) *connection {
	t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{http2.NextProtoTLS}}}
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c := &connection{framer: http2.NewFramer(conn, conn)}
	if err := c.framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return c
}

// send sends a request.
func (c *connection) send(t *testing.T, stream uint32) {
	t.Helper()
	var fields bytes.Buffer
	encoder := hpack.NewEncoder(&fields)
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "test"}, {Name: ":path", Value: "/"},
	} {
		if err := encoder.WriteField(field); err != nil {
			t.Fatal(err)
		}
	}
	param := http2.HeadersFrameParam{StreamID: stream, BlockFragment: fields.Bytes(), EndStream: true, EndHeaders: true}
	if err := c.framer.WriteHeaders(param); err != nil {
		t.Fatal(err)
	}
}

// receive waits for the end of the answer to a request.
func (c *connection) receive(t *testing.T, stream uint32) {
	t.Helper()
	c.await(t, func(frame http2.Frame) bool {
		header := frame.Header()
		return header.StreamID == stream && header.Flags.Has(http2.FlagDataEndStream)
	})
}

// awaitGoAway returns the last stream that the server has heard of, as it says.
func (c *connection) awaitGoAway(t *testing.T) (last uint32) {
	t.Helper()
	c.await(t, func(frame http2.Frame) bool {
		leave, ok := frame.(*http2.GoAwayFrame)
		if ok {
			last = leave.LastStreamID
		}
		return ok
	})
	return last
}

// await reads frames up to one that is wanted.
func (c *connection) await(t *testing.T, wanted func(http2.Frame) bool) {
	t.Helper()
	for {
		frame, err := c.framer.ReadFrame()
		if errors.Is(err, io.EOF) {
			t.Fatal("the server has ended the connection")
		}
		if err != nil {
			t.Fatal(err)
		}
		if wanted(frame) {
			return
		}
	}
}
