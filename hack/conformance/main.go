// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Command conformance runs a server on a free port, has the conformance runner
// send it the recorded cases that the floor file names, and compares the shares
// that pass with the floor. It does not judge cases itself.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/portcullis-dev/portcullis/hack/internal/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	server string
	cases  string
	floor  string
	raise  bool
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.server, "server", "bin/portcullis-apiserver", "path of the `binary` portcullis-apiserver")
	flags.StringVar(&o.cases, "cases", "", "`directory` with the recorded cases and the runner (required)")
	flags.StringVar(&o.floor, "floor", "test/conformance/floor.txt", "`file` with the share of each file of cases that must pass")
	flags.BoolVar(&o.raise, "raise", false, "write higher shares to the floor file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(o.cases, "run")); err != nil || o.cases == "" {
		return fmt.Errorf("%q holds no conformance runner: set CONFORMANCE_DIR to the directory with the recorded cases", o.cases)
	}
	text, err := os.ReadFile(o.floor)
	if err != nil {
		return err
	}
	wanted, err := parseFloor(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", o.floor, err)
	}
	measured, err := measure(ctx, o, wanted.files(), out)
	if err != nil {
		return err
	}
	if o.raise {
		if err := os.WriteFile(o.floor, []byte(wanted.raisedTo(measured)), 0o644); err != nil {
			return err
		}
	}
	return wanted.check(measured)
}

// measure returns the share of each file that passes, in tenths of a percent.
func measure(ctx context.Context, o options, files []string, out io.Writer) (measured map[string]int, err error) {
	dir, err := os.MkdirTemp("", "portcullis-conformance-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	runner := filepath.Join(dir, "runner")
	if err := command(ctx, o.cases, out, "go", "-C", "run", "build", "-o", runner, "."); err != nil {
		return nil, fmt.Errorf("build the conformance runner: %w", err)
	}
	server, err := process.Start(ctx, process.Options{Binary: o.server, DataDir: filepath.Join(dir, "data")})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()

	report := filepath.Join(dir, "report.json")
	args := append([]string{"-kubeconfig", server.Kubeconfig, "-min", "0", "-report", report}, files...)
	if err := command(ctx, o.cases, out, runner, args...); err != nil {
		return nil, fmt.Errorf("run the cases: %w", err)
	}
	return readReport(report)
}

// command runs a program in dir and passes its output on.
func command(ctx context.Context, dir string, out io.Writer, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Stdout, c.Stderr = dir, out, os.Stderr
	return c.Run()
}

// readReport reads what the runner counted. A file of which nothing was judged
// is not in the result.
func readReport(path string) (map[string]int, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var report struct {
		Files []struct {
			Name   string `json:"name"`
			Passed int    `json:"passed"`
			Failed int    `json:"failed"`
		} `json:"files"`
	}
	if err := json.Unmarshal(content, &report); err != nil {
		return nil, fmt.Errorf("report of the runner: %w", err)
	}
	shares := map[string]int{}
	for _, file := range report.Files {
		if judged := file.Passed + file.Failed; judged > 0 {
			shares[file.Name] = file.Passed * perMille / judged
		}
	}
	return shares, nil
}
