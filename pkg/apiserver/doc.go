// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver wires the generic Kubernetes API server to the API group
// policy.portcullis.dev: scheme, storage, discovery, OpenAPI, audit log, access,
// metrics, and the engine with its doors. The parts that are more than wiring are
// below it.
//
// It does not start an etcd, make certificates, read flags or judge requests.
package apiserver
