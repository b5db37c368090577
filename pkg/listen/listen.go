// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listen opens the port of an API server. It does not know who serves on it.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"syscall"
)

// TCP opens the port of an API server, before anything slow is done, so that
// a port in use is known at once.
func TCP(ctx context.Context, ip net.IP, port int) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(ip.String(), strconv.Itoa(port)))
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d on address %s is in use by another process: choose another --secure-port, or --secure-port 0 for a free one", port, ip)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("address %s does not belong to this machine: choose another --bind-address", ip)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("port %d on address %s needs more rights than this user has: choose a --secure-port above 1023", port, ip)
	default:
		return nil, fmt.Errorf("listen with --bind-address %s and --secure-port %d: %w", ip, port, err)
	}
}

// LocalURL is the address under which clients on this machine reach a listener
// bound to ip. An unspecified ip stands for all addresses, loopback among them.
func LocalURL(ip net.IP, addr net.Addr) (string, error) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return "", fmt.Errorf("listener has address %s of type %T, want a TCP address", addr, addr)
	}
	host := ip.String()
	switch {
	case !ip.IsUnspecified():
	case ip.To4() != nil:
		host = "127.0.0.1"
	default:
		host = net.IPv6loopback.String()
	}
	u := url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(tcp.Port))}
	return u.String(), nil
}
