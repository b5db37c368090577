// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
)

const (
	maxAuditAnnotations = 20
	// maxValueExpressionBytes is less than what an annotation may hold (10 KiB):
	// the value is often longer than the expression.
	maxValueExpressionBytes = 5 * 1024
)

func (v *policyValidator) validateAuditAnnotations(annotations []admissionregistrationv1.AuditAnnotation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(annotations) > maxAuditAnnotations {
		errs = append(errs, field.Invalid(path, untagged(annotations),
			fmt.Sprintf("must not have more than %d auditAnnotations", maxAuditAnnotations)))
	}
	keys := sets.New[string]()
	for i := range annotations {
		key := annotations[i].Key
		errs = append(errs, v.validateAuditAnnotation(&annotations[i], path.Index(i))...)
		if keys.Has(key) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("key"), key))
		}
		keys.Insert(key)
	}
	return errs
}

func (v *policyValidator) validateAuditAnnotation(annotation *admissionregistrationv1.AuditAnnotation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	keyPath, expressionPath := path.Child("key"), path.Child("valueExpression")
	if v.policyName == "" {
		errs = append(errs, field.Invalid(keyPath, annotation.Key, "requires metadata.name be non-empty"))
	} else {
		errs = append(errs, validateQualifiedName(v.policyName+"/"+annotation.Key, keyPath)...)
	}
	expression := strings.TrimSpace(annotation.ValueExpression)
	if expression == "" {
		return append(errs, field.Required(expressionPath, "valueExpression is not specified"))
	}
	if len(expression) > maxValueExpressionBytes {
		return append(errs, field.Required(expressionPath, fmt.Sprintf("must not exceed %d bytes in length", maxValueExpressionBytes)))
	}
	err := compile(v.compiler, &validating.AuditAnnotationCondition{ValueExpression: expression},
		v.declarations(), environmentFor(expression, v.stored.auditAnnotations))
	return append(errs, celErrors(expressionPath, annotation.ValueExpression, err)...)
}

// untaggedAuditAnnotation has the fields of AuditAnnotation without the names
// that they have in JSON: upstream prints the value of its internal type.
type untaggedAuditAnnotation struct {
	Key             string
	ValueExpression string
}

func untagged(annotations []admissionregistrationv1.AuditAnnotation) []untaggedAuditAnnotation {
	result := make([]untaggedAuditAnnotation, 0, len(annotations))
	for _, annotation := range annotations {
		result = append(result, untaggedAuditAnnotation(annotation))
	}
	return result
}
