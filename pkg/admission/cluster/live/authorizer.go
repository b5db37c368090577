// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

const (
	// answerFor is how long an answer is remembered. What a user may do may have
	// changed meanwhile.
	answerFor = 5 * time.Second
	// reviewTimeout bounds a question, all attempts together.
	reviewTimeout = 5 * time.Second
)

// reviewer answers by SubjectAccessReviews. It fails closed.
type reviewer struct {
	answers authorizer.UnconditionalAuthorizer
	err     error // there are no answers
}

func newReviewer(client authorizationv1.AuthorizationV1Interface) *reviewer {
	retry := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3}
	answers, err := webhook.NewFromInterface(client, answerFor, answerFor, retry,
		authorizer.DecisionDeny, metrics.NoopAuthorizerMetrics{}, authorizationcel.NewDefaultCompiler())
	return &reviewer{answers: answers, err: err}
}

// Authorize asks the API server of the cluster, unless it has answered lately. An
// error never allows, and is a cluster.UnansweredError: nobody knows what the API
// server would have said.
func (r *reviewer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if r.err != nil {
		return authorizer.DecisionDeny, "", &cluster.UnansweredError{Err: r.err}
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	decision, reason, err := r.answers.Authorize(ctx, attributes)
	if err != nil {
		return authorizer.DecisionDeny, "", &cluster.UnansweredError{Err: fmt.Errorf("SubjectAccessReview: %w", err)}
	}
	return decision, reason, nil
}
