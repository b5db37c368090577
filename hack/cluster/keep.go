// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

const (
	// firstPause and longestPause are how long a replica stays down that has ended. The
	// pauses grow while it does not become ready, as with a kubelet.
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// keep starts replicas again that end, as a kubelet does, until ctx ends. That another
// program of the cluster ends is an error.
func keep(ctx context.Context, c *cluster.Cluster, out io.Writer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	replicas := map[string]bool{}
	log := &lines{out: out}
	var keeping sync.WaitGroup
	for _, replica := range c.Replicas {
		replicas[replica.Identity] = true
		keeping.Go(func() { keepReplica(ctx, replica, log) })
	}
	for _, program := range c.Components() {
		if replicas[program.Name()] {
			continue
		}
		ended := program.Exited()
		keeping.Go(func() {
			select {
			case <-ended:
				stop(fmt.Errorf("%s has ended", program.Name()))
			case <-ctx.Done():
			}
		})
	}
	keeping.Wait()
	return context.Cause(ctx)
}

func keepReplica(ctx context.Context, replica *cluster.Replica, log *lines) {
	pause := firstPause
	for {
		select {
		case <-replica.Exited():
		case <-ctx.Done():
			return
		}
		log.say("Ended", fmt.Sprintf("%s; it is started again in %s", replica.Identity, pause))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		if err := replica.Start(ctx); err != nil {
			pause = min(2*pause, longestPause)
			continue
		}
		pause = firstPause
		log.say("Running", replica.Identity+" at https://"+replica.Address)
	}
}

// lines are written by many.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) say(verb, object string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	say(l.out, verb, object)
}
