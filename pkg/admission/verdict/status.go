// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxCauses bounds the denials that a verdict and its statuses list.
const maxCauses = 100

// ForbiddenStatus returns the status that the API server answers a denied
// request with, or nil when the request is allowed. The text, the reason and
// the code are those of the first denial, as in upstream's Dispatch of
// validating policies; unlike there, the causes list every denial.
func (v Verdict) ForbiddenStatus(resource schema.GroupResource, name string) *metav1.Status {
	if v.Allowed {
		return nil
	}
	first := v.first()
	status := apierrors.NewForbidden(resource, name, errors.New(first.Message)).Status()
	status.Reason, status.Code = first.Reason, Code(first.Reason)
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.Causes = v.causes()
	return &status
}

// ReviewStatus returns the status of an AdmissionResponse, or nil when the
// request is allowed. Its message is the inner text alone: the API server that
// asked puts its own words in front.
func (v Verdict) ReviewStatus() *metav1.Status {
	if v.Allowed {
		return nil
	}
	first := v.first()
	message := first.Message
	if more := v.Denied - 1; more > 0 {
		listed := ""
		if v.Denied > maxCauses {
			listed = fmt.Sprintf(" for the first %d", maxCauses)
		}
		message = fmt.Sprintf("%s (and %d more: see causes%s)", message, more, listed)
	}
	return &metav1.Status{
		Status:  metav1.StatusFailure,
		Message: message,
		Reason:  first.Reason,
		Code:    Code(first.Reason),
		Details: &metav1.StatusDetails{Causes: v.causes()},
	}
}

func (v Verdict) first() Denial {
	first := Denial{Message: "no verdict was reached"}
	if len(v.Denials) > 0 {
		first = v.Denials[0]
	}
	if first.Reason == "" {
		first.Reason = metav1.StatusReasonInvalid
	}
	return first
}

func (v Verdict) causes() []metav1.StatusCause {
	causes := make([]metav1.StatusCause, len(v.Denials))
	for i := range v.Denials {
		causes[i] = metav1.StatusCause{Message: v.Denials[i].Message}
	}
	return causes
}

// Code returns the HTTP code of a reason, as reasonToCode of
// k8s.io/apiserver/pkg/admission/plugin/policy/validating does.
func Code(reason metav1.StatusReason) int32 {
	switch reason {
	case metav1.StatusReasonForbidden:
		return http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		return http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge
	default:
		return http.StatusUnprocessableEntity
	}
}
