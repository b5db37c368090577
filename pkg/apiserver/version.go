// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"runtime/debug"

	"k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
)

// unversioned is what a build without version control information calls itself.
const unversioned = "v0.0.0"

// effectiveVersion makes /version tell the version of this server instead of an
// unset one of Kubernetes, on which kubectl version fails. Feature gates keep
// following the version of the Kubernetes libraries.
type effectiveVersion struct {
	basecompatibility.EffectiveVersion
}

func newEffectiveVersion() effectiveVersion {
	return effectiveVersion{compatibility.DefaultBuildEffectiveVersion()}
}

// Info implements basecompatibility.EffectiveVersion.
func (v effectiveVersion) Info() *apimachineryversion.Info {
	info := *v.EffectiveVersion.Info()
	info.Major, info.Minor, info.GitVersion = "0", "0", buildVersion()
	info.GitCommit, info.GitTreeState, info.BuildDate = "", "", ""
	return &info
}

// buildVersion is the module version that the Go toolchain has stamped.
func buildVersion() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return unversioned
	}
	if _, err := version.ParseSemantic(build.Main.Version); err != nil {
		return unversioned
	}
	return build.Main.Version
}
