// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback finds addresses on this machine. It does not hold them.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports from which FreeAddress chooses are below those that systems give to
// whoever asks for any, and to clients: what listens there may close and listen
// again.
const (
	firstPort = 20_000
	ports     = 12_000
	attempts  = 100
)

// FreeAddress returns a host:port on which nobody listens at the moment.
func FreeAddress() (string, error) {
	var problem error
	for range attempts {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))
		listener, err := net.Listen("tcp", address) //nolint:noctx // it is local
		if err != nil {
			problem = err
			continue
		}
		listener.Close()
		return address, nil
	}
	return "", fmt.Errorf("no free port on 127.0.0.1: %w", problem)
}
