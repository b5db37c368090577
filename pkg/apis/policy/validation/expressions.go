// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"regexp"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/expressions"
)

const maxMatchConditions = 64

// declarations are the names that expressions of the policy may use, save those
// of messages, which may not use the authorizer.
func (v *policyValidator) declarations() plugincel.OptionalVariableDeclarations {
	return plugincel.OptionalVariableDeclarations{HasParams: v.hasParams, HasAuthorizer: true}
}

func (v *policyValidator) validateMatchConditions(conditions []admissionregistrationv1.MatchCondition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(conditions) > maxMatchConditions {
		errs = append(errs, field.TooMany(path, len(conditions), maxMatchConditions))
	}
	names := sets.New[string]()
	for i := range conditions {
		name := conditions[i].Name
		errs = append(errs, v.validateMatchCondition(&conditions[i], path.Index(i))...)
		if name != "" && names.Has(name) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), name))
		}
		names.Insert(name)
	}
	return errs
}

// validateMatchCondition compiles without variables: conditions are asked
// before there are any.
func (v *policyValidator) validateMatchCondition(condition *admissionregistrationv1.MatchCondition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	expressionPath := path.Child("expression")
	if expression := strings.TrimSpace(condition.Expression); expression == "" {
		errs = append(errs, field.Required(expressionPath, ""))
	} else {
		err := compile(v.environment.plain, &matchconditions.MatchCondition{Expression: expression},
			v.declarations(), environmentFor(expression, v.stored.matchConditions))
		errs = append(errs, celErrors(expressionPath, expression, err)...)
	}
	if condition.Name == "" {
		return append(errs, field.Required(path.Child("name"), ""))
	}
	return append(errs, validateQualifiedName(condition.Name, path.Child("name"))...)
}

// validateVariables also refuses what upstream accepts: variables that may read
// themselves, which end the process that evaluates them.
func (v *policyValidator) validateVariables(variables []admissionregistrationv1.Variable, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	faulty := make([]bool, len(variables))
	for i := range variables {
		variableErrs := v.validateVariable(&variables[i], path.Index(i))
		faulty[i] = len(variableErrs) > 0
		errs = append(errs, variableErrs...)
	}
	if v.skipCircles {
		return errs
	}
	faults := expressions.CheckVariables(v.environment.base.StoredExpressionsEnv(), variables, func(i int) bool { return faulty[i] })
	for _, fault := range faults {
		errs = append(errs, field.Invalid(path.Index(fault.Index).Child("expression"), variables[fault.Index].Expression, fault.Detail))
	}
	return errs
}

func (v *policyValidator) validateVariable(variable *admissionregistrationv1.Variable, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(variable.Name) == "" {
		errs = append(errs, field.Required(path.Child("name"), "name is not specified"))
	} else if !isCELIdentifier(variable.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), variable.Name, "must be a valid CEL identifier"))
	}
	expressionPath := path.Child("expression")
	if strings.TrimSpace(variable.Expression) == "" {
		return append(errs, field.Required(expressionPath, "expression is not specified"))
	}
	err := v.compiler.compileVariable(variable, v.declarations(), environmentFor(variable.Expression, v.stored.validations))
	return append(errs, celErrors(expressionPath, variable.Expression, err)...)
}

func (v *policyValidator) validateValidation(validation *admissionregistrationv1.Validation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	expressionPath := path.Child("expression")
	if expression := validation.Expression; strings.TrimSpace(expression) == "" {
		errs = append(errs, field.Required(expressionPath, "expression is not specified"))
	} else {
		err := compile(v.compiler, &validating.ValidationCondition{Expression: expression},
			v.declarations(), environmentFor(expression, v.stored.validations))
		errs = append(errs, celErrors(expressionPath, expression, err)...)
	}
	errs = append(errs, v.validateMessageExpression(validation.MessageExpression, path.Child("messageExpression"))...)
	errs = append(errs, validateMessage(validation.Message, path.Child("message"))...)
	return append(errs, validateReason(validation.Reason, path.Child("reason"))...)
}

// validateMessageExpression compiles the expression with the white space around
// it, so that the columns of compile errors are right.
func (v *policyValidator) validateMessageExpression(expression string, path *field.Path) field.ErrorList {
	if expression == "" {
		return nil
	}
	if strings.TrimSpace(expression) == "" {
		return field.ErrorList{field.Invalid(path, expression, "must be non-empty if specified")}
	}
	err := compile(v.compiler, &validating.MessageExpressionCondition{MessageExpression: expression},
		plugincel.OptionalVariableDeclarations{HasParams: v.hasParams}, environmentFor(expression, v.stored.messages))
	return celErrors(path, expression, err)
}

// validateMessage allows line breaks around the message: they are cut off when
// it is used.
func validateMessage(message string, path *field.Path) field.ErrorList {
	trimmed := strings.TrimSpace(message)
	if message != "" && trimmed == "" {
		return field.ErrorList{field.Invalid(path, message, "must be non-empty if specified")}
	}
	if strings.ContainsAny(trimmed, "\n\r") {
		return field.ErrorList{field.Invalid(path, message, "must not contain line breaks")}
	}
	return nil
}

// validateReason refuses Unauthorized, though the API documentation lists it, as upstream.
func validateReason(reason *metav1.StatusReason, path *field.Path) field.ErrorList {
	if reason == nil {
		return nil
	}
	supported := sets.New(metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)
	if supported.Has(*reason) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *reason, sets.List(supported))}
}

func validateQualifiedName(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, detail := range utilvalidation.IsQualifiedName(name) {
		errs = append(errs, field.Invalid(path, name, detail))
	}
	return errs
}

// isCELIdentifier says whether name is an IDENT of the CEL specification:
// neither a literal nor a reserved word.
func isCELIdentifier(name string) bool {
	switch name {
	case "true", "false", "null", "in",
		"as", "break", "const", "continue", "else", "for", "function", "if", "import",
		"let", "loop", "package", "namespace", "return", "var", "void", "while":
		return false
	}
	return celIdentifier.MatchString(name)
}

var celIdentifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)
