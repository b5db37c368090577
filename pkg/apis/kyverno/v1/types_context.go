// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// ContextEntry declares a variable. It has exactly one source.
type ContextEntry struct {
	// Name is that of the variable.
	// +optional
	Name string `json:"name,omitempty"`
	// Variable is a value or an expression.
	// +optional
	Variable *Variable `json:"variable,omitempty"`
	// ConfigMap is an existing ConfigMap, as {data, metadata}.
	// +optional
	ConfigMap *ConfigMapReference `json:"configMap,omitempty"`
	// APICall is an answer of the API of the cluster.
	// +optional
	APICall *APICall `json:"apiCall,omitempty"`
	// ImageRegistry is refused: the server does not reach out to registries.
	// +optional
	ImageRegistry *apiextensionsv1.JSON `json:"imageRegistry,omitempty"`
	// GlobalReference is refused: there are no GlobalContextEntries.
	// +optional
	GlobalReference *apiextensionsv1.JSON `json:"globalReference,omitempty"`
}

// Variable is a value, or what an expression finds in it or in other variables.
type Variable struct {
	// Value is any JSON, with variables.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
	// JMESPath is applied to value, or to all variables when there is no value.
	// +optional
	JMESPath string `json:"jmesPath,omitempty"`
	// Default stands where the expression finds nothing.
	// +optional
	Default *apiextensionsv1.JSON `json:"default,omitempty"`
}

// ConfigMapReference names a ConfigMap; both fields may have variables.
type ConfigMapReference struct {
	// Name is the name of the ConfigMap.
	// +optional
	Name string `json:"name,omitempty"`
	// Namespace is its namespace: default when empty, or that of the Policy.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// APICall is a request to the API of the cluster.
type APICall struct {
	// URLPath is the path and the query of the request, with variables.
	// +optional
	URLPath string `json:"urlPath,omitempty"`
	// Method is GET (the default) or POST.
	// +optional
	Method string `json:"method,omitempty"`
	// Data makes the body of a POST.
	// +optional
	// +listType=map
	// +listMapKey=key
	Data []RequestData `json:"data,omitempty"`
	// JMESPath is applied to the answer.
	// +optional
	JMESPath string `json:"jmesPath,omitempty"`
	// Default stands where the request fails.
	// +optional
	Default *apiextensionsv1.JSON `json:"default,omitempty"`
	// Service is refused: the server does not call services.
	// +optional
	Service *apiextensionsv1.JSON `json:"service,omitempty"`
}

// RequestData is one field of the body of a POST.
type RequestData struct {
	// Key is the name of the field.
	Key string `json:"key"`
	// Value is any JSON, with variables.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

// Condition compares a key with a value. It is what preconditions are made of.
type Condition struct {
	// Key is any JSON, with variables.
	// +optional
	Key *apiextensionsv1.JSON `json:"key,omitempty"`
	// Operator is the name of the comparison.
	// +optional
	Operator string `json:"operator,omitempty"`
	// Value is any JSON, with variables.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
	// Message tells people what the condition is for.
	// +optional
	Message string `json:"message,omitempty"`
}

// AnyAllConditions hold when all of all hold and, if any is given, one of any.
type AnyAllConditions struct {
	// Any holds where one of the conditions does.
	// +optional
	// +listType=atomic
	Any []Condition `json:"any,omitempty"`
	// All holds where each of the conditions does.
	// +optional
	// +listType=atomic
	All []Condition `json:"all,omitempty"`
}
