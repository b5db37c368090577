// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs the binary portcullis-apiserver as a child, for the
// programs of this folder. It knows the server's flags and nothing behind them.
package process

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long a server may take to stop before it is killed.
const stopTimeout = 30 * time.Second

// Options are the flags of a server.
type Options struct {
	// Binary is the path of portcullis-apiserver.
	Binary string
	// DataDir is the server's data dir. Once the server is ready, its log goes to server.log there.
	DataDir string
	// SecurePort is the port to serve on; 0 picks a free one.
	SecurePort int
	// Objects is a directory of manifests that policies may read. Empty means none.
	Objects string
}

// Server is a portcullis-apiserver that has become ready. Its methods are safe
// for concurrent use.
type Server struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// LogFile is where the server logs to.
	LogFile string

	pid    int
	log    *log
	stop   context.CancelFunc
	exited chan struct{} // closed when the process has ended and failure is set
	// failure is why the process did not end well, or nil.
	failure error
}

// Start runs a server and returns when it is ready. The server is asked to stop
// when ctx ends or Stop is called; one of both must happen.
func Start(ctx context.Context, o Options) (*Server, error) {
	ctx, stop := context.WithCancel(ctx)
	s := &Server{
		Kubeconfig: filepath.Join(o.DataDir, "kubeconfig"),
		LogFile:    filepath.Join(o.DataDir, "server.log"),
		log:        newLog(),
		stop:       stop,
		exited:     make(chan struct{}),
	}
	ready, err := s.launch(ctx, o)
	if err != nil {
		stop()
		return nil, err
	}
	select {
	case <-ready:
		if err := s.log.moveTo(s.LogFile); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
		return s, nil
	case <-s.exited:
		stop()
		return nil, cmp.Or(s.failure, context.Cause(ctx))
	}
}

// launch starts the process. The returned channel is closed when the server has
// announced on its standard output that it is ready.
func (s *Server) launch(ctx context.Context, o Options) (<-chan struct{}, error) {
	command := exec.CommandContext(ctx, o.Binary, o.flags()...)
	command.Stderr = s.log
	// Ctrl-C is for the parent, which then stops the server. Two signals would end it at once.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopTimeout
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("run the server: %w", err)
	}
	s.pid = command.Process.Pid
	ready := make(chan struct{})
	go func() {
		drain(stdout, ready)
		err := command.Wait()
		s.failure = s.ending(ctx, err, command.ProcessState)
		close(s.exited)
	}()
	return ready, nil
}

func (o *Options) flags() []string {
	flags := []string{"--data-dir", o.DataDir, "--secure-port", strconv.Itoa(o.SecurePort)}
	if o.Objects != "" {
		flags = append(flags, "--objects", o.Objects)
	}
	return flags
}

// drain reads until the process closes its end. The first line says that the
// server is ready.
func drain(stdout io.Reader, ready chan<- struct{}) {
	reader := bufio.NewReader(stdout)
	if _, err := reader.ReadString('\n'); err != nil {
		return
	}
	close(ready)
	_, _ = io.Copy(io.Discard, reader) // ends with the process, whose end is judged by its exit code
}

// ending says in the server's own words why it failed. A server that was asked to
// stop before it listens to signals is ended by the signal, which is as good.
func (s *Server) ending(ctx context.Context, err error, state *os.ProcessState) error {
	status, ok := state.Sys().(syscall.WaitStatus)
	asked := ok && status.Signaled() && status.Signal() == syscall.SIGTERM && ctx.Err() != nil
	if state.Success() || asked {
		return nil
	}
	if line, ok := strings.CutPrefix(s.log.lastLine(), "error: "); ok {
		return errors.New(line)
	}
	return fmt.Errorf("the server ended badly: %w", err)
}

// PID is the id of the process.
func (s *Server) PID() int { return s.pid }

// Exited is closed when the server has ended, however it ended.
func (s *Server) Exited() <-chan struct{} {
	return s.exited
}

// Stop asks the server to stop and returns when it has. The error says why it
// did not end well; it is nil when the server stopped as asked.
func (s *Server) Stop() error {
	s.stop()
	<-s.exited
	return errors.Join(s.failure, s.log.close())
}
