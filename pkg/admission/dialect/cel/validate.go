// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// unmatched evaluates the match conditions; see Match in
// k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions. It returns the
// place of the first that is false, whatever the others are, or else their errors,
// or -1 when all are true.
func (p *program) unmatched(ctx context.Context, e *evaluation, counting bool) (int, error) {
	if len(p.conditions) == 0 {
		return -1, nil
	}
	e.begin(conditions, counting, celconfig.RuntimeCELCostBudgetMatchConditions)
	unmet := -1
	var errs []error
	for i := range p.conditions {
		result, err := e.evaluate(ctx, &p.conditions[i])
		switch {
		case err != nil:
			return -1, err
		case result.err != nil:
			errs = append(errs, result.err)
		case result.value == types.False && unmet < 0:
			unmet = i
			if !counting { // the others can change nothing any more
				return unmet, nil
			}
		}
	}
	if unmet >= 0 || len(errs) == 0 {
		return unmet, nil
	}
	return -1, utilerrors.NewAggregate(errs)
}

// result is that of upstream without a failurePolicy, which would change it.
type result struct {
	validating.ValidateResult
	// refused are the places of audit annotations whose error no failurePolicy
	// ignores. There hardly ever are any.
	refused []int
}

// validate evaluates what comes after the match conditions; see Validate in
// k8s.io/apiserver/pkg/admission/plugin/policy/validating.
func (p *program) validate(ctx context.Context, e *evaluation, fit parts) result {
	if p.failure != nil {
		return alone(p.failure)
	}
	decisions, err := p.decide(ctx, e, !fit.has(validations))
	if err != nil {
		return alone(err)
	}
	notes, refused, err := p.annotate(ctx, e, !fit.has(annotations))
	if err != nil {
		return alone(err)
	}
	return result{validating.ValidateResult{Decisions: decisions, AuditAnnotations: notes}, refused}
}

// alone is the result of an error that leaves nothing else.
func alone(err error) result {
	return result{ValidateResult: validating.ValidateResult{Decisions: []validating.PolicyDecision{failed(err.Error())}}}
}

func failed(message string) validating.PolicyDecision {
	return validating.PolicyDecision{Action: validating.ActionDeny, Evaluation: validating.EvalError, Message: message}
}

// decide evaluates the validations and then their messages.
func (p *program) decide(ctx context.Context, e *evaluation, counting bool) ([]validating.PolicyDecision, error) {
	decisions := e.decisionsFor(len(p.validations))
	e.begin(validations, counting, celconfig.RuntimeCELCostBudget)
	denied := false
	for i := range p.validations {
		result, err := e.evaluate(ctx, &p.validations[i])
		if err != nil {
			return nil, err
		}
		decision := &decisions[i]
		switch {
		case result.err != nil:
			*decision = failed(result.err.Error())
		case result.value == types.True:
			decision.Action, decision.Evaluation = validating.ActionAdmit, validating.EvalAdmit
		default:
			decision.Action, decision.Evaluation = validating.ActionDeny, validating.EvalDeny
			denied = true
		}
		decision.Elapsed = result.took
	}
	if !counting && !denied {
		return decisions, nil
	}
	e.begin(messages, counting, e.budget)
	if err := p.tell(ctx, e, decisions); err != nil {
		for i := range decisions {
			if decision := &decisions[i]; decision.Evaluation != validating.EvalError {
				took := decision.Elapsed
				*decision = failed(fmt.Sprintf("failed messageExpression: %s", err))
				decision.Elapsed = took
			}
		}
	}
	return decisions, nil
}

// tell says why validations deny. Upstream evaluates the messages of all, which
// shows only when that exceeds the budget: where nothing is counted, those that are
// needed do.
func (p *program) tell(ctx context.Context, e *evaluation, decisions []validating.PolicyDecision) error {
	for i := range decisions {
		decision := &decisions[i]
		denies := decision.Evaluation == validating.EvalDeny
		if !denies && !e.counting {
			continue
		}
		result, err := e.evaluate(ctx, &p.messages[i])
		if err != nil {
			return err
		}
		if denies {
			validation := &p.spec.Validations[i]
			decision.Message = message(validation, result)
			decision.Reason = metav1.StatusReasonInvalid
			if validation.Reason != nil {
				decision.Reason = *validation.Reason
			}
		}
	}
	return nil
}

// message returns that of a validation that denies: what its messageExpression has
// told, if that can be shown, or else its message, or else its expression.
func message(validation *admissionregistrationv1.Validation, told outcome) string {
	if told.err == nil && told.value != nil {
		text, _ := told.value.Value().(string)
		text = strings.TrimSpace(text)
		if text != "" && len(text) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes && !strings.Contains(text, "\n") {
			return text
		}
	}
	if text := strings.TrimSpace(validation.Message); text != "" {
		return text
	}
	return "failed expression: " + strings.TrimSpace(validation.Expression)
}

// annotate evaluates the audit annotations, and returns which are refused.
func (p *program) annotate(ctx context.Context, e *evaluation, counting bool) (notes []validating.PolicyAuditAnnotation, refused []int, err error) {
	if len(p.annotations) == 0 {
		return nil, nil, nil
	}
	e.begin(annotations, counting, celconfig.RuntimeCELCostBudget)
	notes = make([]validating.PolicyAuditAnnotation, len(p.annotations))
	for i := range p.annotations {
		result, err := e.evaluate(ctx, &p.annotations[i])
		if err != nil {
			return nil, nil, err
		}
		notes[i] = annotation(&p.spec.AuditAnnotations[i], result)
		if result.err == nil && notes[i].Action == validating.AuditAnnotationActionError {
			refused = append(refused, i)
		}
	}
	return notes, refused, nil
}

func annotation(spec *admissionregistrationv1.AuditAnnotation, result outcome) validating.PolicyAuditAnnotation {
	note := validating.PolicyAuditAnnotation{Key: spec.Key, Elapsed: result.took}
	if result.err != nil {
		note.Action, note.Error = validating.AuditAnnotationActionError, result.err.Error()
		return note
	}
	switch value := result.value.(type) {
	case types.String:
		if note.Value = strings.TrimSpace(string(value)); note.Value != "" {
			note.Action = validating.AuditAnnotationActionPublish
			return note
		}
		note.Action = validating.AuditAnnotationActionExclude
	case types.Null:
		note.Action = validating.AuditAnnotationActionExclude
	default:
		note.Action = validating.AuditAnnotationActionError
		note.Error = fmt.Sprintf("valueExpression '%v' resulted in unsupported return type: %v. "+
			"Return type must be either string or null.", spec.ValueExpression, result.value.Type())
	}
	return note
}
