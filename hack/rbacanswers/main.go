// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rbacanswers records what a kube-apiserver with RBAC answers, for the
// tests of the evaluator of this repository, and the RBAC objects that it makes
// itself. It judges nothing and knows nothing of the evaluator. It needs a fresh
// kube-apiserver, and the controller that fills aggregated roles:
//
//	kube-apiserver --authorization-mode=RBAC ...
//	kube-controller-manager --controllers=clusterrole-aggregation-controller ...
//
// The objects that such a server makes itself come first, the answers then; a file
// of answers serves as one of questions:
//
//	rbacanswers --kubeconfig FILE --bootstrap > pkg/admission/cluster/internal/builtin/rbac.jsonl
//	cd pkg/admission/cluster/rbac/testdata
//	rbacanswers --kubeconfig FILE --objects objects.yaml --questions answers.yaml > new.yaml
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rbacanswers:", err)
		stop()
		os.Exit(1)
	}
}

type options struct {
	kubeconfig, objects, questions string
	bootstrap                      bool
	settle                         time.Duration
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("rbacanswers", flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the kube-apiserver, as a member of system:masters")
	flags.StringVar(&o.objects, "objects", "", "YAML with the objects to create first; none of them may exist")
	flags.StringVar(&o.questions, "questions", "", "YAML with a list of questions; answers in it are not read")
	flags.BoolVar(&o.bootstrap, "bootstrap", false, "write the RBAC objects of the server, and ask nothing")
	flags.DurationVar(&o.settle, "settle", 5*time.Second, "how long the answers, or the objects, must not have changed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.kubeconfig == "" || (o.questions == "") == !o.bootstrap || flags.NArg() > 0 {
		return errors.New("give --kubeconfig, and either --questions or --bootstrap")
	}
	server, err := connect(o.kubeconfig)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	if o.bootstrap {
		err = server.writeBootstrap(ctx, buffered, o.settle)
	} else {
		err = server.writeAnswers(ctx, buffered, o)
	}
	return errors.Join(err, buffered.Flush())
}

// server is the kube-apiserver that is asked.
type server struct {
	config  *rest.Config
	typed   kubernetes.Interface
	dynamic dynamic.Interface
	version string
}

func connect(kubeconfig string) (*server, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 200
	config.WarningHandler = rest.NoWarnings{}
	s := &server{config: config}
	if s.typed, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	version, err := s.typed.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	s.version = version.GitVersion
	return s, nil
}
