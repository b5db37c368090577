// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expressions tells what CEL expressions of a policy must not be
// evaluated at all, because evaluating them would end the process: a stack that
// overflows cannot be recovered from in Go. Writes are refused for it, and
// policies that are stored nevertheless judge nothing.
//
// It parses expressions and does not check, compile or evaluate them.
package expressions
