// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install puts every version of the API group into a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// AddToScheme registers the internal and the served versions, with the order
// in which versions are preferred.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.SchemeBuilder{policy.AddToScheme, v1alpha1.AddToScheme, preferVersions}
	return builder.AddToScheme(scheme)
}

func preferVersions(scheme *runtime.Scheme) error {
	return scheme.SetVersionPriority(v1alpha1.SchemeGroupVersion)
}
