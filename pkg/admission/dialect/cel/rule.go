// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"iter"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// rule is what a finding is about.
type rule struct {
	// evaluated are the expressions that lead to the finding, of which the first
	// counted ones are the rule itself.
	evaluated []string
	counted   int
	// telling are the expressions whose values or errors may be in the texts of
	// the finding.
	telling []string
	// took is zero when it has not been measured.
	took time.Duration
}

// validationOf returns the rule of a finding that is no annotation.
func validationOf(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, finding *verdict.Finding) rule {
	if finding.Rule == "" { // about the policy as a whole
		return rule{telling: slices.Collect(expressionsOf(spec))}
	}
	validation := &spec.Validations[finding.Index]
	r := rule{evaluated: []string{validation.Expression}, counted: 1}
	message := validation.MessageExpression
	switch {
	case finding.Kind == verdict.Pass: // has no text
	case finding.Kind != verdict.Fail: // tells an error
		r.telling = []string{validation.Expression, message}
	case message != "":
		r.evaluated = append(r.evaluated, message)
		r.telling = []string{message}
	}
	return r
}

func annotationOf(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, finding *verdict.Finding) rule {
	only := []string{spec.AuditAnnotations[finding.Index].ValueExpression}
	return rule{evaluated: only, counted: 1, telling: only}
}

// conditionsOf returns the match condition that is false, or all of them when
// some fail.
func conditionsOf(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, finding *verdict.Finding) rule {
	if finding.Kind == verdict.NotMatched { // its text quotes the policy alone
		return rule{evaluated: []string{spec.MatchConditions[finding.Index].Expression}, counted: 1}
	}
	var all []string
	for i := range spec.MatchConditions {
		all = append(all, spec.MatchConditions[i].Expression)
	}
	return rule{evaluated: all, counted: len(all), telling: all}
}

// expressionsOf yields all expressions of a policy.
func expressionsOf(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range spec.Variables {
			if !yield(spec.Variables[i].Expression) {
				return
			}
		}
		for i := range spec.MatchConditions {
			if !yield(spec.MatchConditions[i].Expression) {
				return
			}
		}
		for i := range spec.Validations {
			if !yield(spec.Validations[i].Expression) || !yield(spec.Validations[i].MessageExpression) {
				return
			}
		}
		for i := range spec.AuditAnnotations {
			if !yield(spec.AuditAnnotations[i].ValueExpression) {
				return
			}
		}
	}
}
