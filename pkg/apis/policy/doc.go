// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=policy.portcullis.dev

// Package policy is the internal version (the hub) of the API group
// policy.portcullis.dev. Every served version converts to and from it.
package policy
