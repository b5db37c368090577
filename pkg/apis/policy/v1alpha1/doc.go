// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.portcullis.policy.v1alpha1
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/portcullis-dev/portcullis/pkg/apis/policy
// +k8s:defaulter-gen=TypeMeta
// +groupName=policy.portcullis.dev

// Package v1alpha1 is the served and stored version of policy.portcullis.dev.
package v1alpha1
