// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package differential has a test only: random policies, bindings, params,
// objects and requests go through upstream's dispatcher of
// ValidatingAdmissionPolicies and through our chain, and the answers must be the
// same. It says nothing about what differs on purpose: the generator leaves that
// out, with the reason beside it.
package differential
