// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// ValidateValidatingAdmissionPolicyStatusUpdate returns what is wrong with the
// status of a policy. The spec and the old policy do not matter: a status
// update cannot change the one, and may replace whatever the other says.
func ValidateValidatingAdmissionPolicyStatusUpdate(newPolicy, _ *policy.ValidatingAdmissionPolicy) field.ErrorList {
	path := field.NewPath("status")
	if errs := validateSize(newPolicy, path); len(errs) > 0 {
		return errs
	}
	errs := validateTypeChecking(newPolicy.Status.TypeChecking, path.Child("typeChecking"))
	return append(errs, metav1validation.ValidateConditions(newPolicy.Status.Conditions, path.Child("conditions"))...)
}

// ValidateClusterPolicyStatusUpdate returns what is wrong with the status of a
// ClusterPolicy, whatever the rest of it and the old one say.
func ValidateClusterPolicyStatusUpdate(newPolicy, _ *policy.ClusterPolicy) field.ErrorList {
	path := field.NewPath("status")
	if errs := validateSize(newPolicy, path); len(errs) > 0 {
		return errs
	}
	return validatePolicyStatus(&newPolicy.Status, path)
}

// ValidatePolicyStatusUpdate is ValidateClusterPolicyStatusUpdate for a Policy.
func ValidatePolicyStatusUpdate(newPolicy, _ *policy.Policy) field.ErrorList {
	path := field.NewPath("status")
	if errs := validateSize(newPolicy, path); len(errs) > 0 {
		return errs
	}
	return validatePolicyStatus(&newPolicy.Status, path)
}

func validatePolicyStatus(status *policy.PolicyStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if status.ObservedGeneration < 0 {
		errs = append(errs, field.Invalid(path.Child("observedGeneration"), status.ObservedGeneration, "must not be negative"))
	}
	return append(errs, metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))...)
}

func validateTypeChecking(typeChecking *admissionregistrationv1.TypeChecking, path *field.Path) field.ErrorList {
	if typeChecking == nil {
		return nil
	}
	var errs field.ErrorList
	for i, warning := range typeChecking.ExpressionWarnings {
		warningPath := path.Child("expressionWarnings").Index(i)
		if warning.Warning == "" {
			errs = append(errs, field.Required(warningPath.Child("warning"), ""))
		}
		errs = append(errs, validateFieldRef(warning.FieldRef, warningPath.Child("fieldRef"))...)
	}
	return errs
}

// validateFieldRef wants a JSONPath, but not one that leads somewhere: another
// version of the server may have other fields.
func validateFieldRef(fieldRef string, path *field.Path) field.ErrorList {
	trimmed := strings.TrimSpace(fieldRef)
	if trimmed == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if err := jsonpath.New("spec").Parse("{" + trimmed + "}"); err != nil {
		return field.ErrorList{field.Invalid(path, trimmed, fmt.Sprintf("invalid JSONPath: %v", err))}
	}
	return nil
}
