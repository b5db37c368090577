// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// UnansweredError is the error of the authorizer of a View that does not know: the
// cluster could not be asked, or what it holds could not be read. The decision beside
// it is neither yes nor no, and must not be taken for one. kube-apiserver, whose own
// authorizer reads RBAC objects from memory, knows no such error.
type UnansweredError struct {
	Err error // why there is no answer
}

// Error is why there is no answer.
func (e *UnansweredError) Error() string { return e.Err.Error() }

// Unwrap returns why there is no answer.
func (e *UnansweredError) Unwrap() error { return e.Err }
