// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/typing"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/message"
)

// TypeChecked is the condition that says whether the expressions of a policy fit
// the types that its rules name: True when they do, False when one does not, and
// Unknown when that could not be found out. A policy judges all the same.
const TypeChecked = "TypeChecked"

// The reasons of the condition.
const (
	reasonNoWarnings     = "NoWarnings"
	reasonNothingToCheck = "NothingToCheck"
	reasonWarnings       = "TypeWarnings"
	reasonIncomplete     = "Incomplete"
	reasonCheckFailed    = "CheckFailed"
	reasonNoRoom         = "NoRoom"
)

// maxLineBytes bounds what the message says of one expression and type.
const maxLineBytes = 1 << 10

// finding is what is to be written into the status of a policy.
type finding struct {
	// typeChecking is nil when nothing is known.
	typeChecking *admissionregistrationv1.TypeChecking
	condition    metav1.Condition
	// failed says that there was no result.
	failed bool
	// refused says that this stands for a finding that was refused.
	refused bool
}

// put sets the status, and says whether that has changed anything.
func (f *finding) put(stored *v1alpha1.ValidatingAdmissionPolicy) bool {
	status := &stored.Status
	condition := f.condition
	condition.Type, condition.ObservedGeneration = TypeChecked, stored.Generation
	changed := meta.SetStatusCondition(&status.Conditions, condition)
	if status.ObservedGeneration != stored.Generation || !apiequality.Semantic.DeepEqual(status.TypeChecking, f.typeChecking) {
		status.ObservedGeneration, status.TypeChecking = stored.Generation, f.typeChecking.DeepCopy()
		changed = true
	}
	return changed
}

// checked is what a check has found. Without warnings there is an empty
// status.typeChecking, as kube-controller-manager writes it.
func checked(result *typing.Result) *finding {
	f := &finding{typeChecking: &admissionregistrationv1.TypeChecking{ExpressionWarnings: result.ExpressionWarnings()}}
	lines, incomplete := result.Lines(maxLineBytes), result.Incomplete()
	switch {
	case len(lines) > 0:
		if incomplete != "" {
			lines = slices.Insert(lines, 0, incomplete)
		}
		f.condition = metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonWarnings, Message: message.Listed(lines)}
	case incomplete != "":
		f.condition = metav1.Condition{Status: metav1.ConditionUnknown, Reason: reasonIncomplete, Message: incomplete}
	case len(result.Types) == 0:
		f.condition = metav1.Condition{
			Status: metav1.ConditionTrue, Reason: reasonNothingToCheck,
			Message: "no rule names a type that is known: wildcards, subresources and what nobody serves are not checked",
		}
	default:
		f.condition = metav1.Condition{
			Status: metav1.ConditionTrue, Reason: reasonNoWarnings,
			Message: "every expression fits " + named(result.Types),
		}
	}
	return f
}

// named names the first types.
func named(kinds []schema.GroupVersionKind) string {
	const shown = 10
	names := make([]string, 0, shown)
	for _, kind := range kinds[:min(len(kinds), shown)] {
		names = append(names, kind.String())
	}
	text := strings.Join(names, "; ")
	if more := len(kinds) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more types", more)
	}
	return text
}

// failed is what is said when a check has come to nothing.
func failed(err error) *finding {
	return &finding{failed: true, condition: metav1.Condition{
		Status: metav1.ConditionUnknown, Reason: reasonCheckFailed, Message: message.Bounded(err.Error() + "; the policy judges all the same"),
	}}
}

// refused is what is said when the status takes no more, as when the policy itself
// takes up all the room of an object.
func refused(err error) *finding {
	return &finding{refused: true, condition: metav1.Condition{
		Status: metav1.ConditionUnknown, Reason: reasonNoRoom, Message: message.Bounded("the warnings cannot be stored: " + err.Error()),
	}}
}
