// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// SetDefaults_ValidatingAdmissionPolicySpec sets failurePolicy to Fail.
// The rules of this file are those of
// k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go.
func SetDefaults_ValidatingAdmissionPolicySpec(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	if spec.FailurePolicy == nil {
		fail := admissionregistrationv1.Fail
		spec.FailurePolicy = &fail
	}
}

// SetDefaults_MatchResources matches equivalent resources, every namespace and
// every object.
func SetDefaults_MatchResources(match *admissionregistrationv1.MatchResources) {
	if match.MatchPolicy == nil {
		equivalent := admissionregistrationv1.Equivalent
		match.MatchPolicy = &equivalent
	}
	if match.NamespaceSelector == nil {
		match.NamespaceSelector = &metav1.LabelSelector{}
	}
	if match.ObjectSelector == nil {
		match.ObjectSelector = &metav1.LabelSelector{}
	}
}

// SetDefaults_Rule lets a rule apply to both scopes.
func SetDefaults_Rule(rule *admissionregistrationv1.Rule) {
	if rule.Scope == nil {
		all := admissionregistrationv1.AllScopes
		rule.Scope = &all
	}
}

// SetDefaults_AdmissionPreviewSpec judges with the stored policies too.
func SetDefaults_AdmissionPreviewSpec(spec *AdmissionPreviewSpec) {
	if spec.StoredPolicies == "" {
		spec.StoredPolicies = IncludeStoredPolicies
	}
}

// defaultObjectsLimit is how many existing objects a preview judges that does not
// say how many.
const defaultObjectsLimit = 500

// SetDefaults_PreviewObjects judges the first 500 objects as new ones.
func SetDefaults_PreviewObjects(objects *PreviewObjects) {
	if objects.Limit == 0 {
		objects.Limit = defaultObjectsLimit
	}
	if objects.Operation == "" {
		objects.Operation = "CREATE"
	}
}
