// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupName is the API group under which users know these specs.
const GroupName = "kyverno.io"

// SchemeGroupVersion is read by the generated apply configurations; nothing writes it.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}
