// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// operators are the comparisons of Kyverno's pkg/engine/variables/operator.
func operators() []string {
	return []string{
		"Equal", "Equals", "NotEqual", "NotEquals", "In", "NotIn", "AnyIn", "AllIn", "AnyNotIn", "AllNotIn",
		"GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals",
		"DurationGreaterThan", "DurationGreaterThanOrEquals", "DurationLessThan", "DurationLessThanOrEquals",
	}
}

// validatePreconditions accepts any and all and, in a rule, the older form, a list. The
// conditions of loops are not looked at as closely: neither does Kyverno.
func validatePreconditions(raw *apiextensionsv1.JSON, ofRule bool, path *field.Path) field.ErrorList {
	if raw == nil {
		return nil
	}
	text := bytes.TrimSpace(raw.Raw)
	isList := bytes.HasPrefix(text, []byte("["))
	switch {
	case isList && ofRule:
		var list []kyvernov1.Condition
		if errs := decodeStrictly(text, &list, path); len(errs) > 0 {
			return errs
		}
		return validateConditions(list, ofRule, path)
	case !isList && bytes.HasPrefix(text, []byte("{")):
		if errs := refuseOtherConditions(text, path); len(errs) > 0 {
			return errs
		}
		var conditions kyvernov1.AnyAllConditions
		if errs := decodeStrictly(text, &conditions, path); len(errs) > 0 {
			return errs
		}
		return append(validateConditions(conditions.Any, ofRule, path.Child("any")), validateConditions(conditions.All, ofRule, path.Child("all"))...)
	case ofRule:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be an object with any and all, or a list of conditions")}
	default:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be an object with any and all")}
	}
}

// refuseOtherConditions refuses what stands beside any and all, such as an object
// conditions that has them: Kyverno passes it over, and the rule applies without it.
func refuseOtherConditions(text []byte, path *field.Path) field.ErrorList {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil // decodeStrictly says it better
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if name != "any" && name != "all" {
			errs = append(errs, field.Forbidden(path.Child(name), "any and all stand directly below preconditions, and nothing else does"))
		}
	}
	return errs
}

func validateConditions(conditions []kyvernov1.Condition, ofRule bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range conditions {
		errs = append(errs, validateOperator(conditions[i].Operator, path.Index(i).Child("operator"))...)
		if ofRule {
			errs = append(errs, validateOperands(&conditions[i], path.Index(i))...)
		}
	}
	return errs
}

func validateOperator(operator string, path *field.Path) field.ErrorList {
	switch {
	case operator == "":
		return field.ErrorList{field.Required(path, "say how to compare")}
	case !slices.Contains(operators(), operator):
		return field.ErrorList{field.NotSupported(path, operator, operators())}
	}
	return nil
}

func validateOperands(condition *kyvernov1.Condition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if condition.Key == nil {
		errs = append(errs, field.Required(path.Child("key"), "say what to compare"))
	}
	if condition.Value == nil {
		return append(errs, field.Required(path.Child("value"), "say what to compare with; null is no value"))
	}
	if condition.Key == nil || !isOperationKey(condition.Key.Raw) {
		return errs
	}
	return append(errs, validateOperationValue(condition.Value.Raw, path.Child("value"))...)
}

// isOperationKey says whether a condition is about the operation of the request, of
// which all values are known.
func isOperationKey(raw []byte) bool {
	var key string
	if err := json.Unmarshal(raw, &key); err != nil {
		return false
	}
	return strings.ReplaceAll(key, " ", "") == "{{request.operation}}"
}

// validateOperationValue refuses what no operation is: the condition would never, or
// always, hold.
func validateOperationValue(raw []byte, path *field.Path) field.ErrorList {
	var values []any
	if err := json.Unmarshal(raw, &values); err != nil {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
		}
		return validateOperationName(value, path)
	}
	var errs field.ErrorList
	for i, value := range values {
		errs = append(errs, validateOperationName(value, path.Index(i))...)
	}
	return errs
}

func validateOperationName(value any, path *field.Path) field.ErrorList {
	name, ok := value.(string)
	if ok && (hasVariable(name) || slices.Contains(operations(), kyvernov1.Operation(name))) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, operations())}
}

func operations() []kyvernov1.Operation {
	return []kyvernov1.Operation{"CREATE", "UPDATE", "DELETE", "CONNECT"}
}

// hasVariable says whether a text may have a variable, which is known only when a
// request comes.
func hasVariable(text string) bool { return strings.Contains(text, "{{") }
