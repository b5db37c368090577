// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests a whole server over HTTPS: the life that kubectl and
// client-go expect of a stored kind, and the doors that judge with what is stored.
//
// It does not test what a policy language can say.
package integration
