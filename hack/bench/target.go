// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portcullis-dev/portcullis/hack/internal/process"
)

// The phases of admission, which the review doors of the server are named after.
const (
	phaseValidate = "validate"
	phaseMutate   = "mutate"

	reviewPath = "/admission/v1/"
)

// target is a webhook that is measured.
type target struct {
	name    string
	url     string
	pid     int
	tls     *tls.Config
	allowed bool // the verdict that is expected
	changes bool // whether a patch is expected
}

// transport returns a client of the target with one HTTP/2 connection.
func (t *target) transport() *http.Transport {
	return &http.Transport{TLSClientConfig: t.tls.Clone(), ForceAttemptHTTP2: true}
}

// otherOptions say where a target is that others have started.
type otherOptions struct {
	url    string
	pid    int
	caFile string
}

func (o otherOptions) validate() error {
	if o == (otherOptions{}) || o.url != "" && o.pid > 0 && o.caFile != "" {
		return nil
	}
	return errors.New("--url, --pid and --ca belong together: give all three or none")
}

func (o otherOptions) target() (*target, error) {
	authorities, err := os.ReadFile(o.caFile)
	if err != nil {
		return nil, err
	}
	config, err := trust(authorities)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.caFile, err)
	}
	return &target{name: "other", url: o.url, pid: o.pid, tls: config}, nil
}

func trust(authorities []byte) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return nil, errors.New("no certificate in PEM")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// startTargets starts what is measured. stop ends it; it must be called whatever
// the error.
func startTargets(ctx context.Context, o *options, question *review, out io.Writer) (targets []*target, stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var errs []error
		for _, one := range stops {
			errs = append(errs, one())
		}
		return errors.Join(errs...)
	}
	noop, end, err := startNoop(ctx)
	if err != nil {
		return nil, stop, fmt.Errorf("start the webhook that admits everything: %w", err)
	}
	stops = append(stops, end)
	targets = []*target{noop}
	beside := o.unmatched
	if len(beside) == 0 {
		beside = numbers{0}
	}
	for _, number := range beside {
		portcullis, end, err := startPortcullis(ctx, o, number, question, out)
		stops = append(stops, end)
		if err != nil {
			return nil, stop, fmt.Errorf("start Portcullis: %w", err)
		}
		targets = append(targets, portcullis)
	}
	if o.other.url != "" {
		other, err := o.other.target()
		if err != nil {
			return nil, stop, err
		}
		other.allowed, other.changes = o.allowed, targets[1].changes
		targets = append(targets, other)
	}
	return targets, stop, nil
}

// startNoop runs this program as the webhook that admits everything.
func startNoop(ctx context.Context) (*target, func() error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	command := exec.CommandContext(ctx, self, noopCommand)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process
	lifeline, err := command.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	announced, err := command.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := command.Start(); err != nil {
		return nil, nil, err
	}
	end := func() error {
		_ = lifeline.Close()
		err := command.Wait()
		if ctx.Err() != nil {
			return nil // it was ended with the context
		}
		return err
	}
	var where announcement
	line, err := bufio.NewReader(announced).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(bytes.TrimSpace(line), &where)
	}
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	config, err := trust(where.CA)
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return &target{name: "no-op", url: where.URL, pid: command.Process.Pid, tls: config, allowed: true}, end, nil
}

// startPortcullis runs a server in a data dir of its own that holds the policies, and
// beside them as many as are wanted that do not match. end must be called whatever the
// error.
func startPortcullis(ctx context.Context, o *options, beside int, question *review, out io.Writer) (t *target, end func() error, err error) {
	dir, err := os.MkdirTemp("", "portcullis-bench-")
	if err != nil {
		return nil, func() error { return nil }, err
	}
	server, err := process.Start(ctx, process.Options{Binary: o.server, DataDir: filepath.Join(dir, "data")})
	if err != nil {
		return nil, func() error { return os.RemoveAll(dir) }, err
	}
	end = func() error { return errors.Join(server.Stop(), os.RemoveAll(dir)) }
	config, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig)
	if err != nil {
		return nil, end, err
	}
	clientTLS, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, end, err
	}
	t = &target{name: "portcullis", url: config.Host + reviewPath + o.phase, pid: server.PID(), tls: clientTLS, allowed: o.allowed}
	t.changes = o.phase == phaseMutate && o.policies != ""
	if len(o.unmatched) > 0 {
		t.name = fmt.Sprintf("portcullis+%d", beside)
	}
	fmt.Fprintf(out, "Portcullis runs in %s, process %d.\n", dir, t.pid)
	if o.policies == "" {
		return t, end, nil
	}
	return t, end, storePolicies(ctx, config, o, beside, func(ctx context.Context) error {
		return askOnce(ctx, t, question)
	}, out)
}
