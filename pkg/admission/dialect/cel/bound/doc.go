// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bound proves upper bounds of what the evaluation of a CEL admission
// expression can cost under the run-time cost model of Kubernetes: the tracker of
// cel-go (interpreter/runtimecost.go) with CostEstimator of
// k8s.io/apiserver/pkg/cel/library and the trackers of cel-go's ext package. An
// engine may leave cost tracking out of evaluations whose bound is below every
// budget.
//
// A bound is computed by walking the checked expression with upper bounds of the
// sizes of values instead of values. It holds for data of any shape: all that is
// known of the data is its Sizes. A function that is not in the table of this
// package, or whose cost tracker can fail where the function itself does not,
// leaves an expression without a bound.
//
// The package does not evaluate expressions, does not know budgets, and does not
// remember bounds: callers do. A bound says nothing about the cost of the variables
// of a policy, which are evaluations of their own.
package bound
