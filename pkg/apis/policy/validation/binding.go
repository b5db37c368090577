// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// ValidateValidatingAdmissionPolicyBinding returns what is wrong with a new
// binding. Its rules are those of the upstream function of the same name.
func ValidateValidatingAdmissionPolicyBinding(b *policy.ValidatingAdmissionPolicyBinding) field.ErrorList {
	specPath := field.NewPath("spec")
	if errs := validateSize(b, specPath); len(errs) > 0 {
		return errs
	}
	errs := apimachineryvalidation.ValidateObjectMeta(&b.ObjectMeta, false,
		apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateBindingSpec(&b.Spec, specPath)...)
}

// ValidateValidatingAdmissionPolicyBindingUpdate returns what is wrong with a
// binding that is to replace another one. Nothing of a binding is immutable and
// nothing is ratcheted: the old one does not matter.
func ValidateValidatingAdmissionPolicyBindingUpdate(newBinding, _ *policy.ValidatingAdmissionPolicyBinding) field.ErrorList {
	return ValidateValidatingAdmissionPolicyBinding(newBinding)
}

func validateBindingSpec(spec *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	namePath := path.Child("policyName")
	if spec.PolicyName == "" {
		errs = append(errs, field.Required(namePath, ""))
	} else {
		for _, detail := range apimachineryvalidation.NameIsDNSSubdomain(spec.PolicyName, false) {
			errs = append(errs, field.Invalid(namePath, spec.PolicyName, detail))
		}
	}
	errs = append(errs, validateParamRef(spec.ParamRef, path.Child("paramRef"))...)
	errs = append(errs, validateMatchResources(spec.MatchResources, path.Child("matchResources"))...)
	return append(errs, validateValidationActions(spec.ValidationActions, path.Child("validationActions"))...)
}

func validateValidationActions(actions []admissionregistrationv1.ValidationAction, path *field.Path) field.ErrorList {
	if len(actions) == 0 {
		return field.ErrorList{field.Required(path, "at least one validation action is required")}
	}
	var errs field.ErrorList
	supported := sets.New(admissionregistrationv1.Audit, admissionregistrationv1.Deny, admissionregistrationv1.Warn)
	seen := sets.New[admissionregistrationv1.ValidationAction]()
	for i, action := range actions {
		if !supported.Has(action) {
			errs = append(errs, field.NotSupported(path.Index(i), action, sets.List(supported)))
		}
		if seen.Has(action) {
			errs = append(errs, field.Duplicate(path.Index(i), action))
		}
		seen.Insert(action)
	}
	if seen.HasAll(admissionregistrationv1.Deny, admissionregistrationv1.Warn) {
		errs = append(errs, field.Invalid(path, actions, "must not contain both Deny and Warn "+
			"(repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return errs
}
