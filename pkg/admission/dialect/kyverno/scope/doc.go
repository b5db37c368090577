// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scope is what the variables of a Kyverno rule stand for: the request, the
// element of a foreach, the images of the object, and the entries of the context, which
// are found when they are first asked for. What an entry reads of the cluster it reads
// through the view of the request, and nowhere else: there are no calls to services, to
// registries, or to any server.
//
// It does not know how variables are written, nor what rules do with them.
package scope
