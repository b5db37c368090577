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
		origin := &verdict.Origin{Policy: bound.ID, Mutates: r.mutating}
		if r.again {
			return nil // it has been said
		}
		if reason := r.outOfForce(bound); reason != "" {
			return r.unmatched(origin, reason)
		}
		return r.whyNot(ctx, origin, bound.Policy.Policy.Criteria)
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
func (r *run) whyNot(ctx context.Context, origin *verdict.Origin, criteria *match.Criteria) error {
	if r.explain == nil || r.again {
		return nil
	}
	if !r.recorder.ListsUnmatched() {
		return r.unmatched(origin, "") // counted
	}
	reason, err := r.reason(ctx, origin, criteria)
	switch {
	case err != nil:
		reason = err.Error()
	case reason == "":
		reason = "the criteria apply, and yet they did not: the cluster has changed meanwhile, or the index of policies is at fault"
	}
	return r.unmatched(origin, reason)
}

func (r *run) reason(ctx context.Context, origin *verdict.Origin, criteria *match.Criteria) (reason string, err error) {
	defer r.contain(ctx, origin, &err)
	return criteria.WhyNot(ctx, &r.subject), nil
}

func (r *run) unmatched(origin *verdict.Origin, reason string) error {
	return r.record(origin, 0, []verdict.Finding{{Kind: verdict.NotMatched, Message: reason}})
}

// withoutParams records, where someone asks, that a binding selects no params
// and allows that.
func (r *run) withoutParams(origin *verdict.Origin) error {
	if r.explain == nil {
		return nil
	}
	if !r.recorder.ListsUnmatched() {
		return nil // it decides nothing
	}
	return r.recorder.Add(origin, 0, verdict.Finding{
		Kind: verdict.Skip, Message: "no params found, which the binding allows with the parameterNotFoundAction Allow",
	})
}
