// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/spf13/pflag"
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
	if err := flags.Parse([]string{"--data-dir=/data", "--bind-address=192.0.2.1", "--secure-port=8443", "--objects=/objects"}); err != nil {
		t.Fatal(err)
	}
	got := options.standalone()
	if got.DataDir != "/data" || got.BindAddress.String() != "192.0.2.1" || got.SecurePort != 8443 {
		t.Errorf("got %+v", got)
	}
	if options.Objects != "/objects" {
		t.Errorf("got objects %q, want /objects", options.Objects)
	}
}
