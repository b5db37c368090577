// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/portcullis-dev/portcullis/pkg/standalone"
)

// Options are the flags of portcullis-apiserver.
type Options struct {
	// DataDir holds everything that the server keeps.
	DataDir string
	// BindAddress is the IP address to serve on.
	BindAddress string
	// SecurePort is the port to serve on; 0 picks a free one.
	SecurePort int
	// Objects is a directory of manifests that policies may read. Empty means none.
	Objects string
	// Logs says what is logged, and how.
	Logs *logsapi.LoggingConfiguration
}

// NewOptions returns the defaults, with which a server runs.
func NewOptions() *Options {
	return &Options{
		DataDir:     ".portcullis",
		BindAddress: "127.0.0.1",
		SecurePort:  7443,
		Logs:        logsapi.NewLoggingConfiguration(),
	}
}

// AddFlags declares the flags in fs.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "Directory for stored policies, certificates and the administrator's kubeconfig; created when absent.")
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to serve on.")
	fs.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "Port to serve HTTPS on; 0 picks a free one.")
	fs.StringVar(&o.Objects, "objects", o.Objects, "Directory of manifests that policies may read, such as Namespaces and params.")

	logsapi.AddFlags(o.Logs, fs)
	fs.VisitAll(func(flag *pflag.Flag) {
		// These need a feature gate that this command does not offer.
		flag.Hidden = flag.Hidden || strings.HasPrefix(flag.Name, "log-text-") || strings.HasPrefix(flag.Name, "log-json-")
	})
}

// Validate returns everything that is wrong with the flags, each with its name.
func (o *Options) Validate() error {
	var errs []error
	if o.DataDir == "" {
		errs = append(errs, fmt.Errorf("--data-dir is empty: name a directory"))
	}
	if net.ParseIP(o.BindAddress) == nil {
		errs = append(errs, fmt.Errorf("--bind-address %q is not an IP address: use one such as 127.0.0.1, or 0.0.0.0 for all", o.BindAddress))
	}
	if o.SecurePort < 0 || o.SecurePort > 65535 {
		errs = append(errs, fmt.Errorf("--secure-port %d is not a port: use 1 to 65535, or 0 for a free one", o.SecurePort))
	}
	for _, err := range logsapi.Validate(o.Logs, nil, nil) {
		errs = append(errs, err)
	}
	return utilerrors.NewAggregate(errs)
}

// standalone is what the environment of the server is made from.
func (o *Options) standalone() standalone.Options {
	return standalone.Options{
		DataDir:     o.DataDir,
		BindAddress: net.ParseIP(o.BindAddress),
		SecurePort:  o.SecurePort,
	}
}
