// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// buildVersion says which source the binary was built from, as Go recorded it.
func buildVersion() string {
	version := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return fmt.Sprintf("%s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
