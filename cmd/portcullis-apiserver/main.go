// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Command portcullis-apiserver stores admission policies in an API group of its
// own, judges requests with them, and previews verdicts.
package main

import (
	"fmt"
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/logs"

	"github.com/portcullis-dev/portcullis/cmd/portcullis-apiserver/app"
)

func main() {
	err := app.NewCommand().ExecuteContext(genericapiserver.SetupSignalContext())
	logs.FlushLogs()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}
