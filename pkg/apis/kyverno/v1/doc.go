// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 describes the specs of kyverno.io/v1, field by field, as users of
// ClusterPolicy and Policy know them. It holds nothing that acts on them. Fields that
// belong to rules which are no mutate rules are there so that a writer can be told
// so; validation refuses them.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.kyverno.v1
// +groupName=kyverno.io
package v1
