// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"errors"

	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// strictAuthorizer is an authorizer as expressions are given it.
type strictAuthorizer struct {
	of authorizer.UnconditionalAuthorizer
}

// Authorize answers as the authorizer does. Where that does not know (a
// cluster.UnansweredError) it gives no answer at all: it panics with an
// interpreter.EvalCancelledError, which execute and the programs of cel-go make the
// error of the expression that asks, so that the failure policy decides. To return
// the error would not do: in CEL, authorizer.check().allowed() is then false
// (decisionAllowed in k8s.io/apiserver/pkg/cel/library), and such a no is neither
// true nor safe. Other errors are for .errored() and .error(), as in kube-apiserver.
func (a strictAuthorizer) Authorize(ctx context.Context, about authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := a.of.Authorize(ctx, about)
	if unanswered := (*cluster.UnansweredError)(nil); errors.As(err, &unanswered) {
		panic(interpreter.EvalCancelledError{Message: "the authorizer does not answer: " + err.Error()})
	}
	return decision, reason, err
}
