// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills objects of the API group with random values that survive
// defaulting, for round-trip tests.
//
// It does not make objects that pass validation.
package fuzzer

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// Funcs returns the fuzz functions of the API group. Each sets the fields that
// v1alpha1 has a default for, since an absent one would not come back absent.
func Funcs(serializer.CodecFactory) []any {
	return []any{
		func(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			if spec.FailurePolicy == nil {
				ignore := admissionregistrationv1.Ignore
				spec.FailurePolicy = &ignore
			}
		},
		func(match *admissionregistrationv1.MatchResources, c randfill.Continue) {
			c.FillNoCustom(match)
			if match.MatchPolicy == nil {
				exact := admissionregistrationv1.Exact
				match.MatchPolicy = &exact
			}
			if match.NamespaceSelector == nil {
				match.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{c.String(0): c.String(0)}}
			}
			if match.ObjectSelector == nil {
				match.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{c.String(0): c.String(0)}}
			}
		},
		func(rule *admissionregistrationv1.Rule, c randfill.Continue) {
			c.FillNoCustom(rule)
			if rule.Scope == nil {
				cluster := admissionregistrationv1.ClusterScope
				rule.Scope = &cluster
			}
		},
		func(spec *policy.AdmissionPreviewSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			if spec.StoredPolicies == "" {
				spec.StoredPolicies = policy.IgnoreStoredPolicies
			}
		},
		func(objects *policy.PreviewObjects, c randfill.Continue) {
			c.FillNoCustom(objects)
			if objects.Limit == 0 {
				objects.Limit = 1
			}
			if objects.Operation == "" {
				objects.Operation = "UPDATE"
			}
		},
		func(value *apiextensionsv1.JSON, c randfill.Continue) {
			value.Raw = []byte(`{"count":` + string(rune('0'+c.Intn(10))) + `}`)
		},
		func(raw *runtime.RawExtension, c randfill.Continue) {
			raw.Raw = []byte(`{"apiVersion":"example.com/v1","kind":"Example","spec":{"count":` + string(rune('0'+c.Intn(10))) + `}}`)
		},
	}
}
