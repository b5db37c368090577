// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package match answers one question: does this policy apply to this request?
// Criteria is the compiled form of matchConstraints and matchResources, Index
// finds the few policies that may apply among many, and Exempt names the
// requests that no policy judges. WhyNot says in words why the answer is no.
//
// It decides as kube-apiserver does for ValidatingAdmissionPolicy, errors
// included: see k8s.io/apiserver/pkg/admission/plugin/policy/matching. It does
// not know policy languages, bindings, match conditions or what follows from a
// match, and it never converts objects.
package match
