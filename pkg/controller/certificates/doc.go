// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates makes and renews the certificates of servers in a cluster
// that have nobody else to do it: what the servers show to kube-apiserver, and
// what they and the members of their etcd show to each other. Each set is in one
// Secret, which every replica reads and any of them renews: whoever is first, the
// others take. The authority of the serving certificate is written into the one
// APIService and the webhook configurations that are named, and into nothing else.
//
// A new authority is trusted before it signs, and an old one until everything that
// it has signed has ended.
//
// Of RBAC it needs, in the namespace of the servers, get, list, watch and update of
// the Secrets by name, and create of Secrets unless an empty Secret of each name has
// been applied; in the cluster, get, list, watch and patch of the APIService and the
// webhook configurations by name. It creates and deletes no object but the Secrets.
//
// It does not know who serves, what etcd stores, or whether the servers have
// certificates of another kind, such as those of cert-manager: then nothing of this
// package is run.
package certificates

// fieldManager owns what this package writes. It writes no field of the manifests
// that are applied, so that applying them again changes nothing.
const fieldManager = "portcullis"
