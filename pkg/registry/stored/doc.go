// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stored keeps the kinds of the API group in etcd: one strategy and one
// store for all of them, driven by a table of kinds.
//
// It knows nothing of policies beyond that table: it does not compile, match or
// judge, and it does not know which server installs its storage.
package stored
