// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standalone gives an API server what a cluster would otherwise give it:
// a data dir with its lock, a listener, certificates, an etcd server inside the
// process unless there is one elsewhere, and a kubeconfig for the administrator.
//
// It does not know the API server that stands on it, its API group or its
// policies, and it reads no flags. Certificates are looked at when a server
// starts, not while it runs.
package standalone
