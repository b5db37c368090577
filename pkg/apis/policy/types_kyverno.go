// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterPolicy has rules that change the objects of requests, in all namespaces and
// outside of them.
type ClusterPolicy struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Spec is the desired behaviour, field for field that of kyverno.io/v1.
	Spec kyvernov1.Spec
	// Status is written by the server.
	// +optional
	Status PolicyStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterPolicyList is a list of ClusterPolicy objects.
type ClusterPolicyList struct {
	metav1.TypeMeta
	metav1.ListMeta

	// Items are the objects of the list.
	Items []ClusterPolicy
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Policy has rules that change the objects of requests in its namespace.
type Policy struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Spec is the desired behaviour, field for field that of kyverno.io/v1.
	Spec kyvernov1.Spec
	// Status is written by the server.
	// +optional
	Status PolicyStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PolicyList is a list of Policy objects.
type PolicyList struct {
	metav1.TypeMeta
	metav1.ListMeta

	// Items are the objects of the list.
	Items []Policy
}

// PolicyStatus is what became of a ClusterPolicy or a Policy.
type PolicyStatus struct {
	// ObservedGeneration is the generation that the conditions are about.
	ObservedGeneration int64
	// Conditions say whether the policy compiles, and whether it is in force.
	Conditions []metav1.Condition
	// Autogen is what the rules about Pods have become for the controllers of Pods.
	Autogen AutogenStatus
}

// AutogenStatus is what the rules about Pods have become for the controllers of Pods.
type AutogenStatus struct {
	// Rules are applied after those of the spec.
	Rules []kyvernov1.Rule
	// Omitted is the number of rules that are applied too, and for which there is no room here.
	Omitted int32
}
