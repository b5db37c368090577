// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/message"
)

// The conditions of a policy, and their reasons.
const (
	// Compiled says whether the policy could be read and its expressions compiled.
	Compiled = "Compiled"
	// Ready says whether requests are judged by this generation of the policy, as
	// its writer wants it.
	Ready = "Ready"
	// Converges is False on a policy whose rules change an object again that they have
	// been applied to. Without the condition nothing of that kind has been seen.
	Converges = "Converges"

	reasonCompiled      = "Compiled"
	reasonCompileFailed = "CompileFailed"
	reasonCannotDecode  = "CannotDecode"
	reasonInForce       = "InForce"
	reasonNotCompiled   = "NotCompiled"
	reasonDisplaced     = "Displaced"
	reasonPropagating   = "Propagating"
	reasonDiverges      = "ChangesItsResult"
)

// conditions are what a report says to the writer of a policy, if it is in force on
// all servers. They are the same on every server that has the same report.
func (w *words) conditions(report catalog.Report, failurePolicy string) []metav1.Condition {
	compiled := metav1.Condition{
		Type: Compiled, Status: metav1.ConditionTrue, Reason: reasonCompiled, Message: w.compiled,
		ObservedGeneration: report.Generation,
	}
	ready := metav1.Condition{
		Type: Ready, Status: metav1.ConditionTrue, Reason: reasonInForce, Message: w.inForce,
		ObservedGeneration: report.Generation,
	}
	switch {
	case report.Damage != nil:
		compiled.Status, compiled.Reason, compiled.Message = metav1.ConditionFalse, reasonCannotDecode, message.Bounded(report.Damage.Error())
		ready.Status, ready.Reason = metav1.ConditionFalse, reasonNotCompiled
		ready.Message = fmt.Sprintf("it cannot be read: each request that it may match is handled by its failurePolicy %s", failurePolicy)
	case len(report.Faults) > 0:
		compiled.Status, compiled.Reason, compiled.Message = metav1.ConditionFalse, reasonCompileFailed, listed(report.Faults)
		ready.Status, ready.Reason = metav1.ConditionFalse, reasonNotCompiled
		ready.Message = fmt.Sprintf("it does not compile: %s is handled by its failurePolicy %s", w.faulty, failurePolicy)
	case report.Bindings == 0 && w.unbound != "":
		ready.Message = w.unbound
	}
	if whole(&report) && len(report.Warnings) > 0 {
		compiled.Message = message.Listed(append([]string{w.compiled}, report.Warnings...))
	}
	if report.Displaced {
		ready.Status, ready.Reason = metav1.ConditionFalse, reasonDisplaced
		ready.Message = "a bootstrap policy of this name judges in its place: delete it"
	}
	if report.Diverging == "" {
		return []metav1.Condition{compiled, ready}
	}
	return []metav1.Condition{compiled, ready, {
		Type: Converges, Status: metav1.ConditionFalse, Reason: reasonDiverges, Message: message.Bounded(report.Diverging),
		ObservedGeneration: report.Generation,
	}}
}

// whole says that a policy judges as its writer wants it, where it is in force.
func whole(report *catalog.Report) bool {
	return report.Damage == nil && len(report.Faults) == 0 && !report.Displaced
}

// listed names the faults, as many as there is room for.
func listed(faults field.ErrorList) string {
	texts := make([]string, len(faults))
	for i, fault := range faults {
		texts[i] = fault.Error()
	}
	return message.Listed(texts)
}
