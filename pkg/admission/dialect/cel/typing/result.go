// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typing

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// maxIssueBytes bounds what is said of one expression and type: an error quotes
	// the line that it is in, and there may be a hundred.
	maxIssueBytes = 8 << 10
	// maxStatusBytes bounds all warnings of a status. An object has 1 MiB in all.
	maxStatusBytes = 128 << 10
)

// Result is what was found in a policy.
type Result struct {
	// Types are those that the expressions were checked against.
	Types []schema.GroupVersionKind
	// Unchecked are types that were left out, so that checking stays cheap.
	Unchecked []schema.GroupVersionKind
	// Unresolved says that the rules name more resources than are looked up.
	Unresolved bool
	// Findings are the expressions with something wrong: first those that the type
	// checker of Kubernetes checks too.
	Findings []Finding
}

// Finding is what is wrong with one expression.
type Finding struct {
	// FieldRef is the path of the expression in the policy.
	FieldRef string
	// Issues has an entry for each type that the expression does not fit, sorted by
	// type.
	Issues []Issue
	// Listed says that the type checker of Kubernetes checks the expression too.
	Listed bool
}

// Issue is why an expression does not fit a type.
type Issue struct {
	Kind schema.GroupVersionKind
	// Text has one or more errors as CEL prints them, with the line of the
	// expression under each. It is empty when only the type checker of Kubernetes
	// finds an error, by mistake.
	Text string
	// Listed is what the type checker of Kubernetes says, which may be nothing.
	Listed string
}

// ExpressionWarnings returns what belongs in status.typeChecking: what
// kube-controller-manager would write there, mistakes included, and after it, as
// far as not everything could be checked or told, that this is so.
func (r *Result) ExpressionWarnings() []admissionregistrationv1.ExpressionWarning {
	var warnings []admissionregistrationv1.ExpressionWarning
	size, left := 0, 0
	for i := range r.Findings {
		finding := &r.Findings[i]
		if !finding.Listed {
			continue
		}
		warning := finding.warning()
		if warning == "" {
			continue
		}
		if size += len(finding.FieldRef) + len(warning); size > maxStatusBytes {
			left++
			continue
		}
		warnings = append(warnings, admissionregistrationv1.ExpressionWarning{FieldRef: finding.FieldRef, Warning: warning})
	}
	if left > 0 {
		warnings = append(warnings, admissionregistrationv1.ExpressionWarning{
			FieldRef: "spec.validations", Warning: fmt.Sprintf("warnings on %d more expressions are left out: mend those above first", left),
		})
	}
	if note := r.Incomplete(); note != "" {
		warnings = append(warnings, admissionregistrationv1.ExpressionWarning{FieldRef: "spec.matchConstraints.resourceRules", Warning: note})
	}
	return warnings
}

// Incomplete says what was not checked for its cost, and is empty when all was.
func (r *Result) Incomplete() string {
	var notes []string
	if r.Unresolved {
		notes = append(notes, fmt.Sprintf("the rules name more than %d resources: types of the others are not checked", maxLookups))
	}
	if left := len(r.Unchecked); left > 0 {
		notes = append(notes, fmt.Sprintf("the expressions are too many or too long to be checked against all types: %d types are left out, from %v on; spread them over several policies",
			left, r.Unchecked[0]))
	}
	return strings.Join(notes, "; ")
}

// Lines returns what is wrong, without the mistakes of the type checker of
// Kubernetes, one line for each expression and type: field, type and the errors,
// without control characters. Each has at most maxBytes.
func (r *Result) Lines(maxBytes int) []string {
	var lines []string
	for i := range r.Findings {
		finding := &r.Findings[i]
		for _, issue := range finding.Issues {
			if issue.Text != "" {
				lines = append(lines, bounded(fmt.Sprintf("%s: %v: %s", finding.FieldRef, issue.Kind, folded(issue.Text)), maxBytes))
			}
		}
	}
	return lines
}

// warning is the text of TypeCheckingResults of upstream's type checker.
func (f *Finding) warning() string {
	texts := make([]string, 0, len(f.Issues))
	for i := range f.Issues {
		if listed := f.Issues[i].Listed; listed != "" {
			texts = append(texts, fmt.Sprintf("%v: %s\n", f.Issues[i].Kind, listed))
		}
	}
	return strings.Join(texts, "\n")
}

// folded returns the errors of CEL on one line, without the lines of the
// expression that it prints under each.
func folded(text string) string {
	var errors []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " | ") {
			errors = append(errors, strings.TrimSpace(line))
		}
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '\x7f' {
			return ' '
		}
		return r
	}, strings.Join(errors, "; "))
}

// bounded cuts a text to at most maxBytes.
func bounded(text string, maxBytes int) string {
	const cut = " ..."
	if len(text) > maxBytes {
		text = text[:max(0, maxBytes-len(cut))] + cut
	}
	return strings.ToValidUTF8(text, "")
}
