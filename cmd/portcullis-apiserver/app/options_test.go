// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
)

func TestOptionsDefaultsAreValid(t *testing.T) {
	if err := NewOptions().Validate(); err != nil {
		t.Error(err)
	}
}

func TestOptionsValidate(t *testing.T) {
	tests := []struct {
		name  string
		flags []string
		want  string
	}{
		{name: "another place", flags: []string{"--data-dir=/data", "--bind-address=::", "--secure-port=0"}},
		{name: "structured logs", flags: []string{"--logging-format=json", "-v=4"}},
		{name: "empty data dir", flags: []string{"--data-dir="}, want: "--data-dir is empty: name a directory"},
		{
			name: "host name", flags: []string{"--bind-address=localhost"},
			want: `--bind-address "localhost" is not an IP address: use one such as 127.0.0.1, or 0.0.0.0 for all`,
		},
		{name: "negative port", flags: []string{"--secure-port=-1"}, want: "--secure-port -1 is not a port: use 1 to 65535, or 0 for a free one"},
		{
			name: "all at once", flags: []string{"--data-dir=", "--bind-address=", "--secure-port=65536"},
			want: `[--data-dir is empty: name a directory, --bind-address "" is not an IP address: use one such as 127.0.0.1, or 0.0.0.0 for all, --secure-port 65536 is not a port: use 1 to 65535, or 0 for a free one]`,
		},
		{name: "audit log", flags: []string{"--audit-policy-file=/audit.yaml", "--audit-log-path=-", "--audit-log-maxsize=0"}},
		{
			name: "audit log without policy", flags: []string{"--audit-log-path=/audit.log"},
			want: "--audit-log-path is given without --audit-policy-file, which says what to log: name a file with a Policy of audit.k8s.io/v1",
		},
		{
			name: "audit policy without log", flags: []string{"--audit-policy-file=/audit.yaml"},
			want: "--audit-policy-file is given without --audit-log-path, which says where to log: name a file, or - for the standard output",
		},
		{
			name: "audit log limits", flags: []string{"--audit-log-maxage=-1", "--audit-log-maxbackup=-2", "--audit-log-maxsize=-3", "--audit-log-format=xml"},
			want: `[--audit-log-maxage -1 is negative: use 0 for no limit, --audit-log-maxbackup -2 is negative: use 0 for no limit, --audit-log-maxsize -3 is negative: use 0 for no limit, --audit-log-format "xml" is not known: use one of legacy, json]`,
		},
		{name: "external etcd", flags: []string{"--etcd-servers=http://etcd-0:2379,http://etcd-1:2379", "--etcd-prefix=/registry"}},
		{
			name: "external etcd from an empty variable", flags: []string{"--etcd-servers="},
			want: "--etcd-servers is empty: name the servers, or leave it out to use the etcd inside the process",
		},
		{
			name: "prefix of the etcd inside", flags: []string{"--etcd-prefix=/registry"},
			want: "--etcd-prefix is set without --etcd-servers: name the servers, or leave it out to use the etcd inside the process",
		},
		{name: "behind a kube-apiserver", flags: []string{"--kubeconfig=/k", "--etcd-servers=http://e:2379", "--identity=portcullis-0", "--namespace=policies", "--shutdown-delay-duration=0"}},
		{
			name: "both ways to kube-apiserver", flags: []string{"--kubeconfig=/k", "--in-cluster", "--etcd-servers=http://e:2379"},
			want: "--kubeconfig and --in-cluster are both given: they name two ways to kube-apiserver; keep one",
		},
		{
			name: "behind a kube-apiserver without etcd", flags: []string{"--in-cluster"},
			want: "--etcd-servers is not given: a server behind a kube-apiserver stores in an etcd of its own; name its servers",
		},
		{
			name: "what the cluster says itself", flags: []string{"--in-cluster", "--etcd-servers=http://e:2379", "--objects=/o", "--client-ca-file=/c", "--token-auth-file=/t"},
			want: "[--objects has no effect behind a kube-apiserver, since policies read the cluster: leave it out, " +
				"--client-ca-file has no effect behind a kube-apiserver, since kube-apiserver says who callers are: leave it out, " +
				"--token-auth-file has no effect behind a kube-apiserver, since kube-apiserver says who callers are: leave it out]",
		},
		{
			name: "names in a cluster", flags: []string{"--in-cluster", "--etcd-servers=http://e:2379", "--namespace=A", "--identity=a_b", "--tls-cert-file=/c", "--shutdown-delay-duration=-1s"},
			want: `[--tls-cert-file and --tls-private-key-file belong together: give both, or none to have a certificate made, ` +
				`--shutdown-delay-duration -1s is negative: use 0 to stop at once, ` +
				`--namespace "A" is no name of a namespace: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), ` +
				`--identity "a_b" cannot be part of the name of a Lease: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')]`,
		},
		{
			name: "alone with flags of a cluster", flags: []string{"--namespace=a"},
			want: "--namespace is set for a server that runs on its own: name a --kubeconfig, or use --in-cluster",
		},
		{name: "log format", flags: []string{"--logging-format=xml"}, want: `format: Invalid value: "xml": Unsupported log format`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			options := NewOptions()
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			options.AddFlags(flags)
			if err := flags.Parse(tc.flags); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := options.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got error\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestOptionsReachTheServer pins that no flag is declared and then dropped.
func TestOptionsReachTheServer(t *testing.T) {
	options := NewOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse([]string{"--data-dir=/data", "--bind-address=192.0.2.1", "--secure-port=8443", "--objects=/objects", "--client-ca-file=/ca.pem", "--token-auth-file=/tokens.csv"}); err != nil {
		t.Fatal(err)
	}
	got := options.standalone()
	if got.DataDir != "/data" || got.BindAddress.String() != "192.0.2.1" || got.SecurePort != 8443 {
		t.Errorf("got %+v", got)
	}
	if options.Objects != "/objects" {
		t.Errorf("got objects %q, want /objects", options.Objects)
	}
	if options.ClientCAFile != "/ca.pem" || options.TokenAuthFile != "/tokens.csv" {
		t.Errorf("got files of users %q and %q, want /ca.pem and /tokens.csv", options.ClientCAFile, options.TokenAuthFile)
	}
}

// TestAuditOptionsReachTheServer pins the same for the audit log.
func TestAuditOptionsReachTheServer(t *testing.T) {
	options := NewOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse([]string{
		"--audit-policy-file=/audit.yaml", "--audit-log-path=/audit.log", "--audit-log-maxage=1", "--audit-log-maxbackup=2",
		"--audit-log-maxsize=3", "--audit-log-format=legacy",
	}); err != nil {
		t.Fatal(err)
	}
	want := apiserver.AuditOptions{PolicyFile: "/audit.yaml", LogPath: "/audit.log", MaxAge: 1, MaxBackups: 2, MaxSize: 3, Format: "legacy"}
	if options.Audit != want {
		t.Errorf("got %+v, want %+v", options.Audit, want)
	}
}

// TestEtcdOptionsReachTheServer pins the same of the flags of etcd.
func TestEtcdOptionsReachTheServer(t *testing.T) {
	options := NewOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse([]string{
		"--etcd-servers=https://etcd-0:2379,https://etcd-1:2379", "--etcd-cafile=/ca", "--etcd-certfile=/cert", "--etcd-keyfile=/key", "--etcd-prefix=/p",
	}); err != nil {
		t.Fatal(err)
	}
	got := options.standalone().Etcd
	if !slices.Equal(got.ServerList, []string{"https://etcd-0:2379", "https://etcd-1:2379"}) || got.TrustedCAFile != "/ca" || got.CertFile != "/cert" || got.KeyFile != "/key" {
		t.Errorf("got %+v", got)
	}
	if options.Etcd.Prefix != "/p" {
		t.Errorf("got prefix %q, want /p", options.Etcd.Prefix)
	}
}
