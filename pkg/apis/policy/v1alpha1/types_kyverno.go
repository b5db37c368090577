// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterPolicy has rules that change the objects of requests, in all namespaces and
// outside of them.
type ClusterPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired behaviour, field for field that of kyverno.io/v1.
	Spec kyvernov1.Spec `json:"spec,omitempty"`
	// Status is written by the server.
	// +optional
	Status PolicyStatus `json:"status,omitzero"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterPolicyList is a list of ClusterPolicy objects.
type ClusterPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []ClusterPolicy `json:"items"`
}

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Policy has rules that change the objects of requests in its namespace.
type Policy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired behaviour, field for field that of kyverno.io/v1.
	Spec kyvernov1.Spec `json:"spec,omitempty"`
	// Status is written by the server.
	// +optional
	Status PolicyStatus `json:"status,omitzero"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PolicyList is a list of Policy objects.
type PolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Policy `json:"items"`
}

// PolicyStatus is what became of a ClusterPolicy or a Policy.
type PolicyStatus struct {
	// ObservedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions say whether the policy compiles, and whether it is in force.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Autogen is what the rules about Pods have become for the controllers of Pods.
	// +optional
	Autogen AutogenStatus `json:"autogen,omitzero"`
}

// AutogenStatus is what the rules about Pods have become for the controllers of Pods.
type AutogenStatus struct {
	// Rules are applied after those of the spec. Of these, the ones whose names begin with autogen- are not applied
	// where rules are listed here.
	// +optional
	// +listType=atomic
	Rules []kyvernov1.Rule `json:"rules,omitempty"`
	// Omitted is the number of rules that are applied too, and for which there is no room here.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
}
