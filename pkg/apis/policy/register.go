// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind that Portcullis serves.
const GroupName = "policy.portcullis.dev"

// SchemeGroupVersion returns the internal version of the group.
func SchemeGroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}
}

// Resource qualifies a resource name with the group.
func Resource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: GroupName, Resource: resource}
}

// AddToScheme registers the internal kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion(),
		&ValidatingAdmissionPolicy{},
		&ValidatingAdmissionPolicyList{},
		&ValidatingAdmissionPolicyBinding{},
		&ValidatingAdmissionPolicyBindingList{},
		&ClusterPolicy{},
		&ClusterPolicyList{},
		&Policy{},
		&PolicyList{},
		&AdmissionPreview{},
	)
	return nil
}
