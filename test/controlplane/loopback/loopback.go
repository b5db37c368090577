// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback finds addresses on this machine. It does not hold them.
package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports from which FreeAddress chooses are below those that systems give to
// whoever asks for any, and to clients: what listens there may close and listen
// again.
const (
	firstPort = 20_000
	ports     = 12_000
	attempts  = 100
)

// given are the ports that this process has been given. Who asks for several before
// anybody listens must not get one twice.
var given sync.Map //nolint:gochecknoglobals // ports are those of the whole process

// FreeAddress returns a host:port on which nobody listens at the moment, and which it has
// not returned before. It is safe for concurrent use.
func FreeAddress() (string, error) {
	problem := errors.New("all have been given away")
	for range attempts {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))
		if _, taken := given.LoadOrStore(address, true); taken {
			continue
		}
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
