// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// explained returns what judges one policy where someone asks why. Only the
// candidates judge, as they do when nobody asks; of all others it records why
// they have no part in the request.
func (r *run) explained(candidates []*policy.Bound) func(context.Context, *policy.Bound) error {
	judging := make(map[*policy.Bound]bool, len(candidates))
	for _, bound := range candidates {
		judging[bound] = true
	}
	return func(ctx context.Context, bound *policy.Bound) error {
		if ctx.Err() != nil {
			return ErrNoTimeLeft
		}
		if judging[bound] {
			return r.bound(ctx, bound)
		}
		step := verdict.Step{Origin: verdict.Origin{Policy: bound.ID}}
		if reason := r.outOfForce(bound); reason != "" {
			return r.unmatched(step, reason)
		}
		return r.whyNot(ctx, step, bound.Policy.Policy.Criteria)
	}
}

// outOfForce returns why a policy judges no request at all, or not this one
// whatever it says, or an empty text.
func (r *run) outOfForce(bound *policy.Bound) string {
	switch {
	case r.exempt:
		return "exempt: no policy judges " + r.request.RequestResource.GroupResource().String()
	case bound.Policy == nil:
		return "no such policy: only bindings name it"
	case bound.Policy.Policy.NeedsBinding && len(bound.Bindings) == 0:
		return "no binding: a " + bound.ID.Kind + " judges only through a binding that names it"
	}
	return ""
}

// whyNot records why criteria do not apply, where someone asks.
func (r *run) whyNot(ctx context.Context, step verdict.Step, criteria *match.Criteria) error {
	if r.explain == nil {
		return nil
	}
	if !r.recorder.ListsUnmatched() {
		return r.unmatched(step, "") // counted
	}
	reason, err := r.reason(ctx, step, criteria)
	switch {
	case err != nil:
		reason = err.Error()
	case reason == "":
		reason = "the criteria apply, and yet they did not: the cluster has changed meanwhile, or the index of policies is at fault"
	}
	return r.unmatched(step, reason)
}

func (r *run) reason(ctx context.Context, step verdict.Step, criteria *match.Criteria) (reason string, err error) {
	defer r.contain(ctx, step, &err)
	return criteria.WhyNot(ctx, r.subject), nil
}

func (r *run) unmatched(step verdict.Step, reason string) error {
	step.Finding = verdict.Finding{Kind: verdict.NotMatched, Message: reason}
	return r.recorder.Add(step)
}

// withoutParams records, where someone asks, that a binding selects no params
// and allows that.
func (r *run) withoutParams(step verdict.Step) error {
	if r.explain == nil {
		return nil
	}
	if !r.recorder.ListsUnmatched() {
		return nil // it decides nothing
	}
	step.Finding = verdict.Finding{Kind: verdict.Skip, Message: "no params found, which the binding allows with the parameterNotFoundAction Allow"}
	return r.recorder.Add(step)
}
