// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package component runs one program of a control plane as a child of this process:
// it can be stopped, killed and started again, and it ends with its parent. It knows
// neither flags nor certificates.
package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// readyTimeout is how long a program may take to become ready on a busy machine.
	readyTimeout = 2 * time.Minute
	// attemptTimeout bounds one question whether it is ready.
	attemptTimeout = 5 * time.Second
	pollInterval   = 20 * time.Millisecond
	// stopTimeout is how long a program may take to stop before it is killed.
	stopTimeout = 60 * time.Second
)

// Config is what to run.
type Config struct {
	// Name is what errors call the program.
	Name string
	// Binary is the path of the program.
	Binary string
	// Args are its flags.
	Args []string
	// Env is added to the environment of this process.
	Env []string
	// LogFile takes what it writes to stdout and stderr, one start after another.
	LogFile string
	// Ready is nil when it serves. It is asked until then.
	Ready func(context.Context) error
}

// Component is a program that can be started more than once. Its methods are safe
// for concurrent use.
type Component struct {
	config Config

	mu     sync.Mutex
	latest *run // nil before the first start
}

// run is one start of a program.
type run struct {
	process *os.Process
	exited  chan struct{} // closed when the process has ended and err is set
	err     error         // how it ended
	asked   atomic.Bool   // someone told it to end
}

// New returns a component that is not started yet.
func New(config Config) *Component {
	return &Component{config: config}
}

// Name is what errors call the program.
func (c *Component) Name() string { return c.config.Name }

// LogFile is what the program writes to.
func (c *Component) LogFile() string { return c.config.LogFile }

// Start starts the program and returns when it is ready. The end of ctx ends the
// waiting, and does not concern a program that is ready.
func (c *Component) Start(ctx context.Context) error {
	c.mu.Lock()
	if c.latest != nil && c.latest.running() {
		c.mu.Unlock()
		return fmt.Errorf("%s runs already, as process %d", c.config.Name, c.latest.process.Pid)
	}
	started, err := c.launch(ctx)
	if err != nil {
		c.mu.Unlock()
		return fmt.Errorf("start %s: %w", c.config.Name, err)
	}
	c.latest = started
	c.mu.Unlock()
	if err := c.waitReady(ctx, started); err != nil {
		started.kill()
		return err
	}
	return nil
}

// Restart stops the program and starts it again.
func (c *Component) Restart(ctx context.Context) error {
	if err := c.Stop(); err != nil {
		return err
	}
	return c.Start(ctx)
}

// launch starts a process that the kernel kills when this one ends, where the system can do that.
func (c *Component) launch(ctx context.Context) (*run, error) {
	log, err := os.OpenFile(c.config.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(context.WithoutCancel(ctx), c.config.Binary, c.config.Args...)
	command.Env = append(os.Environ(), c.config.Env...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = attributes()
	r := &run{exited: make(chan struct{})}
	launched := make(chan error, 1)
	go func() {
		defer log.Close()
		// To the kernel, the parent is the thread that starts the child: it must not end before.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		r.process = command.Process
		launched <- err
		if err == nil {
			r.err = command.Wait()
			close(r.exited)
		}
	}()
	if err := <-launched; err != nil {
		return nil, err
	}
	return r, nil
}

func (c *Component) waitReady(ctx context.Context, r *run) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("given up after %s", readyTimeout))
	defer cancel()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	var last error // what was wrong while there was time
	for {
		problem := c.ask(ctx)
		switch {
		case !r.running():
			return c.withTail(fmt.Errorf("%s ended before it was ready: %w", c.config.Name, r.ending()))
		case problem == nil:
			return nil
		case ctx.Err() != nil:
			return c.withTail(fmt.Errorf("%s is not ready: %w: %w", c.config.Name, context.Cause(ctx), cmp.Or(last, problem)))
		}
		last = problem
		select {
		case <-poll.C:
		case <-r.exited:
		case <-ctx.Done():
		}
	}
}

func (c *Component) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return c.config.Ready(ctx)
}

// Stop asks the program to stop and returns when it has. It is an error when the
// program had to be killed, or had ended unasked.
func (c *Component) Stop() error {
	r := c.current()
	if r == nil {
		return nil
	}
	if !r.running() {
		if r.asked.Swap(true) { // it is told once
			return nil
		}
		return c.withTail(fmt.Errorf("%s ended unasked: %w", c.config.Name, r.ending()))
	}
	r.signal(syscall.SIGTERM)
	select {
	case <-r.exited:
		return nil
	case <-time.After(stopTimeout):
		r.kill()
		return c.withTail(fmt.Errorf("%s did not stop within %s and was killed", c.config.Name, stopTimeout))
	}
}

// Kill ends the program as a power cut does, and returns when it has ended.
func (c *Component) Kill() {
	if r := c.current(); r != nil {
		r.kill()
	}
}

// Pause lets the program do nothing until Resume, with its connections open.
func (c *Component) Pause() error { return c.pass(syscall.SIGSTOP) }

// Resume ends what Pause began.
func (c *Component) Resume() error { return c.pass(syscall.SIGCONT) }

func (c *Component) pass(signal syscall.Signal) error {
	r := c.current()
	if r == nil || !r.running() {
		return fmt.Errorf("%s does not run", c.config.Name)
	}
	return r.process.Signal(signal)
}

// PID is the id of the process that was started last, and 0 when none was.
func (c *Component) PID() int {
	if r := c.current(); r != nil {
		return r.process.Pid
	}
	return 0
}

// Exited is closed when the process that was started last has ended. It is nil when
// none was started.
func (c *Component) Exited() <-chan struct{} {
	if r := c.current(); r != nil {
		return r.exited
	}
	return nil
}

func (c *Component) current() *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest
}

func (r *run) running() bool {
	select {
	case <-r.exited:
		return false
	default:
		return true
	}
}

// ending is how a process ended that has ended.
func (r *run) ending() error {
	if r.err == nil {
		return errors.New("exit status 0")
	}
	return r.err
}

func (r *run) signal(signal os.Signal) {
	r.asked.Store(true)
	// Both fail when the process has ended. One that is paused hears of the first with the second.
	_ = r.process.Signal(signal)
	_ = r.process.Signal(syscall.SIGCONT)
}

func (r *run) kill() {
	r.signal(syscall.SIGKILL)
	<-r.exited
}
