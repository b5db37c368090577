// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateParamKind accepts nil: a policy needs no params.
func validateParamKind(paramKind *admissionregistrationv1.ParamKind, path *field.Path) field.ErrorList {
	if paramKind == nil {
		return nil
	}
	errs := validateParamAPIVersion(paramKind.APIVersion, path.Child("apiVersion"))
	if paramKind.Kind == "" {
		return append(errs, field.Required(path.Child("kind"), ""))
	}
	if details := utilvalidation.IsDNS1035Label(strings.ToLower(paramKind.Kind)); len(details) > 0 {
		errs = append(errs, field.Invalid(path.Child("kind"), paramKind.Kind,
			"may have mixed case, but should otherwise match: "+strings.Join(details, ",")))
	}
	return errs
}

// validateParamAPIVersion accepts the groups and versions that an APIService accepts.
func validateParamAPIVersion(apiVersion string, path *field.Path) field.ErrorList {
	if apiVersion == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return field.ErrorList{field.Invalid(path, apiVersion, err.Error())}
	}
	var errs field.ErrorList
	if gv.Group != "" {
		if details := utilvalidation.IsDNS1123Subdomain(gv.Group); len(details) > 0 {
			errs = append(errs, field.Invalid(path, gv.Group, strings.Join(details, ",")))
		}
	}
	if gv.Version == "" {
		return append(errs, field.Invalid(path, apiVersion, "version must be specified"))
	}
	if details := utilvalidation.IsDNS1035Label(gv.Version); len(details) > 0 {
		errs = append(errs, field.Invalid(path, gv.Version, strings.Join(details, ",")))
	}
	return errs
}

// validateParamRef accepts nil. Otherwise it wants a name or a selector, and an
// answer to what follows when nothing is found.
func validateParamRef(ref *admissionregistrationv1.ParamRef, path *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	const exclusive = "name and selector are mutually exclusive"
	var errs field.ErrorList
	if ref.Name != "" {
		for _, detail := range content.IsPathSegmentName(ref.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), ref.Name, detail))
		}
		if ref.Selector != nil {
			errs = append(errs, field.Forbidden(path.Child("name"), exclusive))
		}
	}
	if ref.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(ref.Selector,
			metav1validation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
		if ref.Name != "" {
			errs = append(errs, field.Forbidden(path.Child("selector"), exclusive))
		}
	}
	if ref.Name == "" && ref.Selector == nil {
		errs = append(errs, field.Required(path, "one of name or selector must be specified"))
	}
	return append(errs, validateParameterNotFoundAction(ref.ParameterNotFoundAction, path.Child("parameterNotFoundAction"))...)
}

func validateParameterNotFoundAction(action *admissionregistrationv1.ParameterNotFoundActionType, path *field.Path) field.ErrorList {
	if action == nil || *action == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	switch *action {
	case admissionregistrationv1.AllowAction, admissionregistrationv1.DenyAction:
		return nil
	default:
		return field.ErrorList{field.NotSupported(path, *action, []admissionregistrationv1.ParameterNotFoundActionType{
			admissionregistrationv1.DenyAction, admissionregistrationv1.AllowAction,
		})}
	}
}
