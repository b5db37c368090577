// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"fmt"
	"net"
	"testing"
)

func TestListenPicksAFreePort(t *testing.T) {
	listener, err := TCP(t.Context(), net.IPv4(127, 0, 0, 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if addr, ok := listener.Addr().(*net.TCPAddr); !ok || addr.Port == 0 {
		t.Errorf("got address %v, want a port", listener.Addr())
	}
}

func TestListenErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port

	tests := []struct {
		name string
		ip   string
		port int
		want string
	}{
		{
			name: "port taken", ip: "127.0.0.1", port: port,
			want: fmt.Sprintf("port %d on address 127.0.0.1 is in use by another process: choose another --secure-port, or --secure-port 0 for a free one", port),
		},
		{
			name: "foreign address", ip: "192.0.2.1", // kept for documentation by RFC 5737
			want: "address 192.0.2.1 does not belong to this machine: choose another --bind-address",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			listener, err := TCP(t.Context(), net.ParseIP(tc.ip), tc.port)
			if err == nil {
				listener.Close()
				t.Fatal("got no error")
			}
			if err.Error() != tc.want {
				t.Errorf("got error\n%s\nwant\n%s", err, tc.want)
			}
		})
	}
}

func TestLocalURL(t *testing.T) {
	tests := []struct{ bound, want string }{
		{bound: "127.0.0.1", want: "https://127.0.0.1:7443"},
		{bound: "192.0.2.1", want: "https://192.0.2.1:7443"},
		{bound: "0.0.0.0", want: "https://127.0.0.1:7443"},
		{bound: "::1", want: "https://[::1]:7443"},
		{bound: "::", want: "https://[::1]:7443"},
	}
	for _, tc := range tests {
		t.Run(tc.bound, func(t *testing.T) {
			got, err := LocalURL(net.ParseIP(tc.bound), &net.TCPAddr{Port: 7443})
			if err != nil || got != tc.want {
				t.Errorf("got %q, error %v, want %q", got, err, tc.want)
			}
		})
	}
	if got, err := LocalURL(net.IPv6loopback, &net.UnixAddr{}); err == nil {
		t.Errorf("a socket in the file system: got %q, want an error", got)
	}
}
