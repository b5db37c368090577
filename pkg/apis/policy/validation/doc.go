// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation checks the objects of policy.portcullis.dev before they
// are stored. It reports every fault at once, with the field paths, values,
// texts and order that kube-apiserver uses for the kinds of the same name
// (k8s.io/kubernetes/pkg/apis/admissionregistration/validation), so that a
// policy is refused here for the reason it would be refused for there. What it refuses
// of a ClusterPolicy or a Policy, Kyverno refuses too, or it is about rules that are not
// run here; the texts are its own.
//
// Expressions are compiled as they will be when they judge, but against no
// schema: a field that the judged kind does not have is a matter of the type
// checker. The package expects objects with their defaults set. It reads
// nothing but its arguments, and does not know who writes the object: whether
// the writer may read the params of a policy is asked elsewhere.
package validation
