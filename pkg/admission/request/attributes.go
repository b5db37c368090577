// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// Attributes returns the original request in the terms of admission plugins.
func (r *Request) Attributes() admission.Attributes {
	return admission.NewAttributesRecord(orNil(r.Object), orNil(r.OldObject),
		r.RequestKind, r.Namespace, r.Name, r.RequestResource, r.RequestSubResource,
		r.Operation, orNil(r.Options), r.DryRun, r.User)
}

// DisplayName is the name that a denial shows, as extractResourceName of
// k8s.io/apiserver/pkg/admission derives it.
func (r *Request) DisplayName() string {
	if r.Name != "" {
		return r.Name
	}
	if r.Object != nil {
		if name := r.Object.GetName(); name != "" {
			return name
		}
		if name := r.Object.GetGenerateName(); name != "" {
			return name
		}
	}
	return "Unknown"
}

// orNil avoids a typed nil.
func orNil(obj *unstructured.Unstructured) runtime.Object {
	if obj == nil {
		return nil
	}
	return obj
}
