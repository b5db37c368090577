// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Command quickstart shows a newcomer a verdict: it runs portcullis-apiserver,
// stores the policies of an example, has a review judged, and serves until it is
// interrupted. It is a client like any other and knows no internals of the server.
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

	"k8s.io/client-go/tools/clientcmd"

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

// options are the command line. Those of the server have the server's names,
// because its error messages name them.
type options struct {
	server  process.Options
	example string
	once    bool
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.server.Binary, "server", "bin/portcullis-apiserver", "path of the `binary` portcullis-apiserver")
	flags.StringVar(&o.server.DataDir, "data-dir", ".portcullis", "data `directory` of the server")
	flags.IntVar(&o.server.SecurePort, "secure-port", 7443, "`port` to serve on; 0 picks a free one")
	flags.StringVar(&o.example, "example", "artifacts/examples/quickstart", "`directory` with policies.yaml, review.json and objects")
	flags.BoolVar(&o.once, "once", false, "stop after the verdict")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q: only flags are taken", flags.Arg(0))
	}
	o.server.Objects = filepath.Join(o.example, "objects")
	return o, nil
}

// run is the whole command. An interrupt is a good end.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	server, err := process.Start(ctx, o.server)
	if err != nil {
		return good(ctx, explain(err))
	}
	err = show(ctx, o, server, out)
	if err == nil && !o.once {
		fmt.Fprintf(out, "\nServing until Ctrl-C. The server logs to %s.\n", server.LogFile)
		select {
		case <-ctx.Done():
		case <-server.Exited():
		}
	}
	return errors.Join(good(ctx, err), server.Stop())
}

// explain adds to an error that asks for another flag how make passes one.
func explain(err error) error {
	for _, name := range []string{"secure-port", "data-dir"} {
		if strings.Contains(err.Error(), " --"+name) {
			return fmt.Errorf("%w (make run RUN_FLAGS=\"--%s ...\")", err, name)
		}
	}
	return err
}

// good drops an error that only says that the user has interrupted.
func good(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// show leads from the running server to the verdict and to what can be tried next.
func show(ctx context.Context, o *options, server *process.Server, out io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Running  portcullis-apiserver at %s\n", config.Host)
	binding, err := storePolicies(ctx, config, filepath.Join(o.example, "policies.yaml"), out)
	if err != nil {
		return err
	}
	if err := showVerdict(ctx, config, filepath.Join(o.example, "review.json"), out); err != nil {
		return err
	}
	if o.once {
		return nil
	}
	return printNextSteps(o, server, binding, out)
}

func printNextSteps(o *options, server *process.Server, binding string, out io.Writer) error {
	kubeconfig, err := filepath.Abs(server.Kubeconfig)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `
Next, in another terminal, in this directory:

  export KUBECONFIG=%s
  # List the stored policies.
  kubectl get portcullis
  # Preview the verdict, and see why.
  kubectl create -f %s -o yaml
  # Take the policy out of force, and ask again: allowed.
  kubectl delete pvapb %s
  kubectl create --raw %s -f %s
`, kubeconfig, filepath.Join(o.example, "preview.yaml"), binding, reviewPath, filepath.Join(o.example, "review.json"))
	return nil
}
