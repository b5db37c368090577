// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portcullis-dev/portcullis/pkg/aggregated"
)

// ClusterOptions are the flags of a server behind a kube-apiserver.
type ClusterOptions struct {
	// Kubeconfig says how to reach kube-apiserver. With it the server is aggregated.
	Kubeconfig string
	// InCluster reaches kube-apiserver with the service account of the Pod.
	InCluster bool
	// Namespace is where the server keeps its leases and certificates.
	Namespace string
	// Identity tells this replica from the others.
	Identity string
	// EtcdSecret names the Secret of the certificates of etcd, which the server makes.
	EtcdSecret string
	// CertFile and KeyFile are the serving certificate, if others make it.
	CertFile, KeyFile string
	// ShutdownDelay is how long the server serves on after it is told to stop.
	ShutdownDelay time.Duration
}

// defaultShutdownDelay is longer than a load balancer takes to hear that a server is
// not ready any more.
const defaultShutdownDelay = 8 * time.Second

func newClusterOptions() ClusterOptions {
	return ClusterOptions{ShutdownDelay: defaultShutdownDelay}
}

func (o *ClusterOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "File that says how to reach the kube-apiserver that forwards requests to this server and answers who callers are. With it, or with --in-cluster, the server does not run on its own.")
	fs.BoolVar(&o.InCluster, "in-cluster", o.InCluster, "Reach kube-apiserver with the service account of the Pod, instead of a --kubeconfig.")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace for the leases and the certificates of the server; that of the Pod, or "+aggregated.DefaultNamespace+", when empty.")
	fs.StringVar(&o.Identity, "identity", o.Identity, "Name of this replica among the others, such as that of its Pod; the name of the host when empty.")
	fs.StringVar(&o.EtcdSecret, "etcd-certificates-secret", o.EtcdSecret, "Secret in --namespace for the certificates of the members of etcd and of their clients, instead of --etcd-cafile and the like. The servers make it; etcd waits for it.")
	fs.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "PEM file of the serving certificate behind a kube-apiserver, read again when it changes. Without it the server makes one, and writes its authority where kube-apiserver looks.")
	fs.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "PEM file of the key of --tls-cert-file.")
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay-duration", o.ShutdownDelay, "How long a server behind a kube-apiserver goes on serving, not ready, after it is told to stop.")
}

// aggregated says whether the server stands behind a kube-apiserver.
func (o *ClusterOptions) aggregated() bool { return o.Kubeconfig != "" || o.InCluster }

// validate returns everything that is wrong with the flags among themselves.
func (o *ClusterOptions) validate() []error {
	if !o.aggregated() {
		return o.validateAlone()
	}
	var errs []error
	if o.Kubeconfig != "" && o.InCluster {
		errs = append(errs, errors.New("--kubeconfig and --in-cluster are both given: they name two ways to kube-apiserver; keep one"))
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file belong together: give both, or none to have a certificate made"))
	}
	if o.ShutdownDelay < 0 {
		errs = append(errs, fmt.Errorf("--shutdown-delay-duration %v is negative: use 0 to stop at once", o.ShutdownDelay))
	}
	if o.Namespace != "" {
		for _, problem := range validation.IsDNS1123Label(o.Namespace) {
			errs = append(errs, fmt.Errorf("--namespace %q is no name of a namespace: %s", o.Namespace, problem))
		}
	}
	if o.Identity != "" {
		for _, problem := range validation.IsDNS1123Subdomain(o.Identity) {
			errs = append(errs, fmt.Errorf("--identity %q cannot be part of the name of a Lease: %s", o.Identity, problem))
		}
	}
	return errs
}

// validateAlone refuses what would silently have no effect.
func (o *ClusterOptions) validateAlone() []error {
	var errs []error
	delay := ""
	if o.ShutdownDelay != defaultShutdownDelay {
		delay = o.ShutdownDelay.String()
	}
	for _, flag := range []struct{ name, value string }{
		{"--namespace", o.Namespace},
		{"--identity", o.Identity},
		{"--etcd-certificates-secret", o.EtcdSecret},
		{"--tls-cert-file", o.CertFile},
		{"--tls-private-key-file", o.KeyFile},
		{"--shutdown-delay-duration", delay},
	} {
		if flag.value != "" {
			errs = append(errs, fmt.Errorf("%s is set for a server that runs on its own: name a --kubeconfig, or use --in-cluster", flag.name))
		}
	}
	return errs
}

// validateAggregated refuses what a server behind a kube-apiserver does not heed.
func (o *Options) validateAggregated() []error {
	var errs []error
	for _, flag := range []struct{ name, value, instead string }{
		{"--objects", o.Objects, "policies read the cluster"},
		{"--client-ca-file", o.ClientCAFile, "kube-apiserver says who callers are"},
		{"--token-auth-file", o.TokenAuthFile, "kube-apiserver says who callers are"},
	} {
		if flag.value != "" {
			errs = append(errs, fmt.Errorf("%s has no effect behind a kube-apiserver, since %s: leave it out", flag.name, flag.instead))
		}
	}
	if o.Cluster.EtcdSecret != "" && (o.Etcd.CAFile != "" || o.Etcd.CertFile != "" || o.Etcd.KeyFile != "") {
		errs = append(errs, errors.New("--etcd-certificates-secret is given with --etcd-cafile, --etcd-certfile or --etcd-keyfile: keep the Secret, or the files"))
	}
	if o.Etcd.Servers == nil {
		errs = append(errs, errors.New("--etcd-servers is not given: a server behind a kube-apiserver stores in an etcd of its own; name its servers"))
	}
	return errs
}

func (o *Options) environment() aggregated.Options {
	return aggregated.Options{
		Kubeconfig:  o.Cluster.Kubeconfig,
		Namespace:   o.Cluster.Namespace,
		Identity:    o.Cluster.Identity,
		BindAddress: net.ParseIP(o.BindAddress),
		SecurePort:  o.SecurePort,
		DataDir:     o.DataDir,
		EtcdSecret:  o.Cluster.EtcdSecret,
		CertFile:    o.Cluster.CertFile,
		KeyFile:     o.Cluster.KeyFile,
	}
}
