// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// Attributes returns the original request in the terms of admission plugins. All
// callers share it: nobody may add annotations to it.
func (r *Request) Attributes() admission.Attributes { return r.attributes }

func (f *Fields) attributes() admission.Attributes {
	return admission.NewAttributesRecord(orNil(f.Object), orNil(f.OldObject),
		f.RequestKind, f.Namespace, f.Name, f.RequestResource, f.RequestSubResource,
		f.Operation, orNil(f.Options), f.DryRun, f.User)
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
