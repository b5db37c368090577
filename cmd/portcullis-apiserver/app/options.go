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

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
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
	// BootstrapPolicies is a directory of manifests of policies that are not stored.
	// Empty means none.
	BootstrapPolicies string
	// ClientCAFile is a bundle of authorities whose certificates users show.
	// Empty means none.
	ClientCAFile string
	// TokenAuthFile lists the bearer tokens of users. Empty means none.
	TokenAuthFile string
	// DirectReviewAnonymous lets callers without credentials POST to the direct
	// review doors.
	DirectReviewAnonymous bool
	// Etcd says where the etcd servers of others are. Without any, one is started.
	Etcd standalone.ExternalEtcd
	// Cluster says how kube-apiserver is reached, if the server stands behind one.
	Cluster ClusterOptions
	// Audit says which requests are told of in the audit log.
	Audit apiserver.AuditOptions
	// Logs says what is logged, and how.
	Logs *logsapi.LoggingConfiguration
}

// NewOptions returns the defaults, with which a server runs.
func NewOptions() *Options {
	return &Options{
		DataDir:     ".portcullis",
		BindAddress: "127.0.0.1",
		SecurePort:  7443,
		Cluster:     newClusterOptions(),
		Audit:       apiserver.NewAuditOptions(),
		Logs:        logsapi.NewLoggingConfiguration(),
	}
}

// AddFlags declares the flags in fs.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "Directory for stored policies, certificates and the administrator's kubeconfig; created when absent.")
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to serve on.")
	fs.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "Port to serve HTTPS on; 0 picks a free one.")
	fs.StringVar(&o.Objects, "objects", o.Objects, "Directory of manifests that policies may read, such as Namespaces and params, for a server on its own. Followed when it changes.")
	fs.StringVar(&o.BootstrapPolicies, "bootstrap-policies", o.BootstrapPolicies, "Directory of manifests of policies and bindings that are in force before the first request and that the API cannot change; their names end with .static.k8s.io. Followed when it changes.")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile, "PEM bundle of authorities: a client certificate signed by one of them is the user of its common name, with its organizations as groups. For a server on its own; read again when it changes.")
	fs.StringVar(&o.TokenAuthFile, "token-auth-file", o.TokenAuthFile, "CSV file of bearer tokens, a line each: token,user,uid,\"group1,group2\". For a server on its own; read at start.")
	fs.BoolVar(&o.DirectReviewAnonymous, "direct-review-anonymous", o.DirectReviewAnonymous, "Let callers without credentials POST to "+apiserver.ReviewPath+" and "+apiserver.MutationPath+": a kube-apiserver shows its webhooks none unless it is told to. Whoever reaches the port can then find out what policies deny.")
	fs.StringSliceVar(&o.Etcd.Servers, "etcd-servers", o.Etcd.Servers, "List of etcd servers to store in (scheme://host:port), comma separated. Without it an etcd server is started in the process.")
	fs.StringVar(&o.Etcd.CAFile, "etcd-cafile", o.Etcd.CAFile, "PEM file of the authorities that sign the certificates of the etcd servers; those of the system when empty.")
	fs.StringVar(&o.Etcd.CertFile, "etcd-certfile", o.Etcd.CertFile, "PEM file of the client certificate to show to the etcd servers.")
	fs.StringVar(&o.Etcd.KeyFile, "etcd-keyfile", o.Etcd.KeyFile, "PEM file of the key of --etcd-certfile.")
	fs.StringVar(&o.Etcd.Prefix, "etcd-prefix", o.Etcd.Prefix, "Path to put before all keys in etcd; "+apiserver.DefaultEtcdPrefix+" when empty.")
	o.Cluster.addFlags(fs)
	fs.StringVar(&o.Audit.PolicyFile, "audit-policy-file", o.Audit.PolicyFile, "File with a Policy of audit.k8s.io/v1, which says what is told of which requests in the audit log. Read at start.")
	fs.StringVar(&o.Audit.LogPath, "audit-log-path", o.Audit.LogPath, "File to append audit events to, - for the standard output.")
	fs.IntVar(&o.Audit.MaxAge, "audit-log-maxage", o.Audit.MaxAge, "Days to keep the files that the audit log was rotated into; 0 for ever.")
	fs.IntVar(&o.Audit.MaxBackups, "audit-log-maxbackup", o.Audit.MaxBackups, "Number of files to keep that the audit log was rotated into; 0 for all.")
	fs.IntVar(&o.Audit.MaxSize, "audit-log-maxsize", o.Audit.MaxSize, "Megabytes at which the audit log is rotated; 0 for never.")
	fs.StringVar(&o.Audit.Format, "audit-log-format", o.Audit.Format, "Format of audit events: json, or legacy for a line of text.")

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
	errs = append(errs, o.Etcd.Validate())
	errs = append(errs, o.Cluster.validate()...)
	if o.Cluster.aggregated() {
		errs = append(errs, o.validateAggregated()...)
	}
	errs = append(errs, o.Audit.Validate()...)
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
		Etcd:        o.Etcd.Transport(),
	}
}
