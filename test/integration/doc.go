// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests a whole server over HTTPS: the life that kubectl and
// client-go expect of a stored kind.
//
// It does not test what policies decide.
package integration
