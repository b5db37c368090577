// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cluster gives a newcomer a cluster with Portcullis in it: it runs a control
// plane of Kubernetes on this machine, installs artifacts/deploy, and keeps replicas of
// portcullis-apiserver running until it is interrupted. It installs as users do, and
// knows no internals of the server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

// The user for trying what others than administrators may do.
const (
	developer  = "alice"
	developers = "devs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // who interrupts twice does not want to wait
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	dir      string
	replicas int
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.dir, "dir", ".portcullis-cluster", "`directory` for all files; what an earlier cluster left there is removed")
	flags.IntVar(&o.replicas, "replicas", 2, "`number` of servers")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q: only flags are taken", flags.Arg(0))
	}
	if o.replicas < 1 {
		return nil, fmt.Errorf("--replicas %d: there must be one at least", o.replicas)
	}
	return o, nil
}

// run is the whole command. An interrupt is a good end.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	place, err := claim(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.release()) }()
	cluster, err := start(ctx, o, place, out)
	if err != nil {
		return good(ctx, err)
	}
	err = serve(ctx, o, place, cluster, out)
	fmt.Fprintf(out, "\nStopping\n")
	return errors.Join(good(ctx, err), cluster.Stop())
}

// good drops the error of a start that the user has interrupted.
func good(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func start(ctx context.Context, o *options, place *place, out io.Writer) (*cluster.Cluster, error) {
	settings, err := cluster.FromRepository(place.data())
	if err != nil {
		return nil, err
	}
	root, err := cluster.Root()
	if err != nil {
		return nil, err
	}
	settings.Replicas = o.replicas
	settings.Progress = func(verb, object string) {
		say(out, verb, strings.TrimPrefix(object, root+string(filepath.Separator)))
	}
	return cluster.Start(ctx, settings)
}

// serve hands the cluster to its users, and keeps it until ctx ends.
func serve(ctx context.Context, o *options, place *place, cluster *cluster.Cluster, out io.Writer) error {
	access, err := cluster.AddDeveloper(ctx, developer, developers)
	if err != nil {
		return err
	}
	if err := place.publish(cluster.AdminKubeconfig, administratorFile); err != nil {
		return err
	}
	say(out, "Wrote", filepath.Join(o.dir, administratorFile)+", for the administrator")
	if err := place.publish(access, developerFile); err != nil {
		return err
	}
	say(out, "Wrote", filepath.Join(o.dir, developerFile)+", for "+developer+" of the group "+developers)
	printNextSteps(o, out)
	return keep(ctx, cluster, out)
}

func say(out io.Writer, verb, object string) {
	fmt.Fprintf(out, "%-8s %s\n", verb, object)
}

func printNextSteps(o *options, out io.Writer) {
	fmt.Fprintf(out, `
Next, in another terminal, in this directory:

  export PATH=$PWD/bin/controlplane:$PATH
  export KUBECONFIG=%s
  # Who serves the kinds of Portcullis?
  kubectl get apiservice %s
  # What is asked about each request?
  kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations %s -o yaml

README.md goes on from there. Serving until Ctrl-C; the logs are in %s.
`, quoted(filepath.Join(o.dir, administratorFile)), cluster.APIService, cluster.Registration, filepath.Join(o.dir, dataDir))
}

// quoted is a path as a shell takes it, from wherever it is used.
func quoted(path string) string {
	if filepath.IsAbs(path) {
		return "'" + path + "'"
	}
	return "$PWD/" + path
}
