// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MatchResources says which requests a rule is about: any, or all, or the older form
// of one filter.
type MatchResources struct {
	// Any matches where one of the filters does.
	// +optional
	// +listType=atomic
	Any []ResourceFilter `json:"any,omitempty"`
	// All matches where each of the filters does.
	// +optional
	// +listType=atomic
	All []ResourceFilter `json:"all,omitempty"`
	// ResourceFilter is the older form.
	ResourceFilter `json:",inline"`
}

// ResourceFilter selects requests. What is absent is not looked at; what is there must
// all hold, and of a list one.
type ResourceFilter struct {
	// Roles are Roles that the user has, in the form namespace:name.
	// +optional
	// +listType=atomic
	Roles []string `json:"roles,omitempty"`
	// ClusterRoles are ClusterRoles that the user has.
	// +optional
	// +listType=atomic
	ClusterRoles []string `json:"clusterRoles,omitempty"`
	// Subjects are the users, groups and service accounts.
	// +optional
	// +listType=atomic
	Subjects []rbacv1.Subject `json:"subjects,omitempty"`
	// Resources selects by the object.
	// +optional
	Resources ResourceDescription `json:"resources,omitzero"`
}

// ResourceDescription selects by the object of a request.
type ResourceDescription struct {
	// Kinds are Kind, version/Kind, group/version/Kind, each with /subresource, with wildcards.
	// +optional
	// +listType=atomic
	Kinds []string `json:"kinds,omitempty"`
	// Name is the older form of names.
	// +optional
	Name string `json:"name,omitempty"`
	// Names are names of objects, with wildcards.
	// +optional
	// +listType=atomic
	Names []string `json:"names,omitempty"`
	// Namespaces are names of namespaces, with wildcards.
	// +optional
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// Annotations are all needed; keys and values may have wildcards.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Selector selects by labels; keys and values of matchLabels may have wildcards.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// NamespaceSelector selects by the labels of the namespace of the object.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// Operations are CREATE, UPDATE, DELETE and CONNECT; all when absent.
	// +optional
	// +listType=atomic
	Operations []Operation `json:"operations,omitempty"`
}

// Operation is one of CREATE, UPDATE, DELETE and CONNECT.
type Operation string
