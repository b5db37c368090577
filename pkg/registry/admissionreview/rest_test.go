// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/portcullis-dev/portcullis/pkg/registry/admissionreview"
)

// TestResourceJudgesNothing: what reaches the resource past the door is refused.
func TestResourceJudgesNothing(t *testing.T) {
	r := admissionreview.NewREST("validation")
	answer, err := r.Create(t.Context(), r.New(), nil, nil)
	if answer != nil || !apierrors.IsNotFound(err) {
		t.Errorf("got %v and error %v, want a refusal", answer, err)
	}
}
