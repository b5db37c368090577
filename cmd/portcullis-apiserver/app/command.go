// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app turns the command line of portcullis-apiserver into a running
// server. It joins package standalone and package apiserver, which do not know
// each other, and knows nothing of policies.
package app

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // for --logging-format=json
)

// NewCommand returns the command portcullis-apiserver. Its context ends the
// server. An error is for the caller to print: the command prints neither the
// error nor its usage.
func NewCommand() *cobra.Command {
	options := NewOptions()
	command := &cobra.Command{
		Use:   "portcullis-apiserver",
		Short: "Store admission policies, judge requests with them, and preview verdicts",
		Long: `portcullis-apiserver is a Kubernetes API server for admission policies.

Without a flag it runs on its own: it keeps its data in ./.portcullis, serves on
127.0.0.1:7443 and writes a kubeconfig for kubectl to .portcullis/kubeconfig.`,
		Args:          cobra.NoArgs,
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return err
			}
			if err := logsapi.ValidateAndApply(options.Logs, nil); err != nil {
				return fmt.Errorf("set up logging: %w", err)
			}
			return Run(command.Context(), options, os.Stdout)
		},
	}
	command.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	options.AddFlags(command.Flags())
	return command
}
