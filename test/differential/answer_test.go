// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answer is what a user, a client and the audit log learn of a verdict.
type answer struct {
	Allowed     bool
	Code        int32
	Reason      metav1.StatusReason
	Message     string
	Details     metav1.StatusDetails // with the first of its causes: ours has all
	Warnings    []string
	Annotations map[string]string
	// Failed is an error of the request as a whole, which is no verdict.
	Failed string
}

// newAnswer reads what an admission plugin has answered.
func newAnswer(err error, warnings []string, annotations map[string]string) answer {
	a := answer{Allowed: err == nil, Warnings: warnings, Annotations: maps.Clone(annotations)}
	if err == nil {
		return a
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) == 0 {
		return answer{Failed: err.Error()}
	}
	a.status(&status.ErrStatus)
	return a
}

func (a *answer) status(status *metav1.Status) {
	a.Code, a.Reason, a.Message = status.Code, status.Reason, status.Message
	a.Details = *status.Details
	a.Details.Causes = a.Details.Causes[:1:1]
}

func (a *answer) diff(other answer) string {
	return cmp.Diff(*a, other, cmpopts.EquateEmpty())
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (- upstream, + ours):\n%s", what, diff)
	}
}
