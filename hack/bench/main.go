// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what a verdict over the wire costs. It starts a webhook
// that admits everything and a server with a set of policies, has both answer the
// same review in alternating rounds, and prints CPU time, throughput, latency and
// memory, as figures and as ratios to that webhook. It asks the door where objects are
// validated, or with --phase mutate the one where they are changed. With --unmatched it
// starts several servers, with so many policies more that do not match. The CPU time of
// a request is what the system charges the process of the server with; that of this
// program does not count. It knows no internals of the server and judges no result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// noopCommand is the argument with which the program is the webhook.
const noopCommand = "noop"

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
	server      string
	policies    string
	set         string
	phase       string
	review      string
	allowed     bool
	load        load
	rounds      int
	warmup      time.Duration
	other       otherOptions
	unmatched   numbers
	maxRatio    float64
	maxGrowth   float64
	keepRunning bool
}

// load is what each round puts on a target.
type load struct {
	concurrency int
	connections int
	duration    time.Duration
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.server, "server", "bin/portcullis-apiserver", "path of the `binary` portcullis-apiserver")
	flags.StringVar(&o.policies, "policies", "artifacts/bench/policies.yaml", "`file` of policies and bindings, of admissionregistration.k8s.io/v1 or of our group; empty for none")
	flags.StringVar(&o.set, "set", "", "`name` of a set of policies in hack/bench/sets, in place of --policies and --phase")
	flags.StringVar(&o.phase, "phase", phaseValidate, "the `phase` that is measured: validate or mutate; with mutate, --policies are ClusterPolicies of kyverno.io/v1 or of our group, each of which must change the object")
	flags.StringVar(&o.review, "review", "artifacts/bench/review.json", "`file` with the AdmissionReview to send; each request has a uid of its own")
	flags.Var(&o.unmatched, "unmatched", "`numbers` of policies that do not match, to be installed beside the others in a server each, such as 10,1000")
	flags.BoolVar(&o.allowed, "allowed", true, "the verdict that is expected of the policies")
	flags.IntVar(&o.load.concurrency, "concurrency", 8, "`number` of requests in flight")
	flags.IntVar(&o.load.connections, "connections", 1, "`number` of HTTP/2 connections that the requests share; kube-apiserver has one for each webhook")
	flags.DurationVar(&o.load.duration, "duration", 5*time.Second, "`time` that a round lasts for each target")
	flags.IntVar(&o.rounds, "rounds", 7, "`number` of rounds")
	flags.DurationVar(&o.warmup, "warm-up", 3*time.Second, "`time` that each target is driven before the first round")
	flags.StringVar(&o.other.url, "url", "", "`URL` of another webhook to measure, with its path")
	flags.IntVar(&o.other.pid, "pid", 0, "id of the `process` that serves --url")
	flags.StringVar(&o.other.caFile, "ca", "", "PEM `file` of the authorities that sign the certificate of --url")
	flags.Float64Var(&o.maxRatio, "max-ratio", 0, "fail when Portcullis needs more than this `multiple` of the CPU time of the webhook that admits everything; 0 for no limit")
	flags.Float64Var(&o.maxGrowth, "max-growth", 1.2, "fail when the last server of --unmatched needs more than this `multiple` of the CPU time of the first; 0 for no limit")
	flags.BoolVar(&o.keepRunning, "keep-running", false, "after the report, leave everything running until Ctrl-C, to look at the server")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q: only flags are taken", flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := o.useSet(given); err != nil {
		return nil, err
	}
	if o.phase == phaseMutate && o.set == "" && !given["policies"] {
		return nil, errors.New("--phase=mutate needs --policies that change objects; or give --set")
	}
	return o, o.validate()
}

func (o *options) validate() error {
	switch {
	case o.phase != phaseValidate && o.phase != phaseMutate:
		return fmt.Errorf("--phase must be %s or %s", phaseValidate, phaseMutate)
	case o.load.concurrency < 1 || o.load.connections < 1 || o.load.connections > o.load.concurrency:
		return errors.New("--concurrency must be 1 or more, and --connections from 1 to --concurrency")
	case o.rounds < 1:
		return errors.New("--rounds must be 1 or more")
	case o.load.duration < minDuration:
		return fmt.Errorf("--duration must be %s or more: CPU time is counted in steps of %s", minDuration, tick)
	}
	if len(o.unmatched) > 0 && (o.phase != phaseMutate || o.other.url != "") {
		return errors.New("--unmatched needs --phase=mutate, and takes no --url")
	}
	return o.other.validate()
}

// run is the whole command.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == noopCommand {
		return serveNoop(os.Stdin, out)
	}
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	question, err := readReview(o.review)
	if err != nil {
		return err
	}
	targets, stop, err := startTargets(ctx, o, question, out)
	if err != nil {
		return errors.Join(err, stop())
	}
	err = measure(ctx, o, targets, question, out)
	if err == nil && o.keepRunning {
		fmt.Fprintln(out, "\nRunning until Ctrl-C.")
		<-ctx.Done()
	}
	return errors.Join(err, stop())
}

// measure drives the targets in turns and prints what they needed.
func measure(ctx context.Context, o *options, targets []*target, question *review, out io.Writer) error {
	for _, t := range targets {
		warm := o.load
		warm.duration = o.warmup
		if _, err := drive(ctx, t, question, warm); err != nil {
			return fmt.Errorf("warm up %s: %w", t.name, err)
		}
	}
	results, err := playRounds(ctx, o, targets, question, out)
	if err != nil {
		return err
	}
	if err := results.believable(); err != nil {
		return err
	}
	results.print(out, targets)
	return results.check(out, limitsOf(o, targets))
}
