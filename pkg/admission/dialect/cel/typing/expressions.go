// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typing

import (
	"unicode/utf8"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// expression is one of a policy, and what was found in it.
type expression struct {
	fieldRef string
	text     string
	// variable is the name of the variable that the expression defines.
	variable string
	// listed says that the type checker of Kubernetes checks it too.
	listed bool
	issues []Issue
}

// expressionsOf returns the expressions of a policy. Variables come first: the
// others have their types.
func expressionsOf(policy *admissionregistrationv1.ValidatingAdmissionPolicySpec) []*expression {
	var all []*expression
	add := func(path *field.Path, text string) *expression {
		e := &expression{fieldRef: path.String(), text: text}
		all = append(all, e)
		return e
	}
	spec := field.NewPath("spec")
	for i := range policy.Variables {
		variable := &policy.Variables[i]
		add(spec.Child("variables").Index(i).Child("expression"), variable.Expression).variable = variable.Name
	}
	for i := range policy.MatchConditions {
		add(spec.Child("matchConditions").Index(i).Child("expression"), policy.MatchConditions[i].Expression)
	}
	for i := range policy.Validations {
		validation := &policy.Validations[i]
		path := spec.Child("validations").Index(i)
		add(path.Child("expression"), validation.Expression).listed = true
		if validation.MessageExpression != "" {
			add(path.Child("messageExpression"), validation.MessageExpression).listed = true
		}
	}
	for i := range policy.AuditAnnotations {
		add(spec.Child("auditAnnotations").Index(i).Child("valueExpression"), policy.AuditAnnotations[i].ValueExpression)
	}
	return all
}

const (
	// overhead is what an expression costs beside its length.
	overhead = 64
	// foreign is what a byte outside of ASCII costs, at which the parser is slow.
	foreign = 50
)

// Work estimates what it costs to check a policy against one type, in bytes of
// expressions: a million takes about a quarter of a second.
func Work(policy *admissionregistrationv1.ValidatingAdmissionPolicySpec) int {
	return work(expressionsOf(policy))
}

func work(expressions []*expression) int {
	sum := overhead
	for _, e := range expressions {
		sum += overhead + len(e.text)
		for i := range len(e.text) {
			if e.text[i] >= utf8.RuneSelf {
				sum += foreign
			}
		}
	}
	return sum
}
