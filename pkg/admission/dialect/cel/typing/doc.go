// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package typing checks the expressions of a CEL policy against the schemas of the
// types that its rules name, and finds what no object of the type can have, such as
// a misspelt field. It never changes what a policy decides.
//
// What it says of validations is what the type checker of Kubernetes says of them,
// TypeChecker of k8s.io/apiserver/pkg/admission/plugin/policy/validating, by the
// same rules and in the same words. It also checks what that one does not: match
// conditions, variables and audit annotations.
//
// It does not know where schemas come from, who wants to hear of a finding, nor
// how policies judge.
package typing
