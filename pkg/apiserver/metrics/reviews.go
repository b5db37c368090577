// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"time"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// Values of the label verdict.
const (
	verdictAllowed = "allowed"
	verdictDenied  = "denied"
	verdictError   = "error"
)

// Values of the label reason.
const (
	reasonNotReady           = "not_ready"
	reasonNoTimeLeft         = "no_time_left"
	reasonTooManyEvaluations = "too_many_evaluations"
	reasonOther              = "other"
)

// Judged counts the evaluations of a verdict. A match condition that is false is an
// evaluation, as it costs one: it counts as not matched. Policies that are not
// about the request at all are not in the verdict on a review, and an evaluation
// that only writes audit annotations is not in it either; they are not counted.
func (r *Registry) Judged(v *verdict.Verdict) {
	for rest := v.Evaluations; len(rest) > 0; {
		n := length(rest)
		r.evaluated(rest[:n])
		rest = rest[n:]
	}
}

// Failed counts a review that could not be judged.
func (r *Registry) Failed(err error) {
	reason := reasonOther
	switch {
	case errors.Is(err, chain.ErrNotReady):
		reason = reasonNotReady
	case errors.Is(err, chain.ErrNoTimeLeft):
		reason = reasonNoTimeLeft
	case errors.Is(err, verdict.ErrTooManyEvaluations):
		reason = reasonTooManyEvaluations
	}
	r.reviewFailures.WithLabelValues(reason).Inc()
}

// Unjudged counts a review that was admitted without being judged.
func (r *Registry) Unjudged() { r.reviewsUnjudged.Inc() }

// length returns how many of the steps belong to the evaluation that the first
// one belongs to: the same policy, through the same binding, with the same param.
func length(steps []verdict.Evaluation) int {
	first := &steps[0]
	for i := 1; i < len(steps); i++ {
		step := &steps[i]
		if step.Policy != first.Policy || step.Binding != first.Binding || step.Param != first.Param {
			return i
		}
	}
	return len(steps)
}

// evaluated counts one evaluation, of which steps are what the rules led to.
func (r *Registry) evaluated(steps []verdict.Evaluation) {
	counters := r.counters(steps[0].Policy)
	if counters == nil {
		return // deleted since the request began
	}
	gravest, failures, ignored := unmatched, 0, 0
	for i := range steps {
		step := gravityOf(steps[i].Outcome)
		gravest = max(gravest, step)
		if step == failed {
			failures++
			if steps[i].OnError == verdict.Ignore {
				ignored++
			}
		}
	}
	counters.outcomes[gravest].Add(1)
	if failures > 0 {
		counters.failures.Add(1)
	}
	if ignored > 0 {
		counters.failOpen.Add(1)
	}
	if took := steps[0].Took; took > 0 { // zero when the program was not run
		counters.duration.Observe(took.Seconds())
	}
}

// gravity orders what the rules of a policy may lead to.
type gravity int

const (
	unmatched gravity = iota
	skipped
	allowed
	changed
	audited
	warned
	failed
	denied
	gravities // their number
)

// gravityOf returns the gravity of an outcome. One that this version does not
// know is a failure.
func gravityOf(outcome verdict.Outcome) gravity {
	switch outcome {
	case verdict.Unmatched:
		return unmatched
	case verdict.Skipped:
		return skipped
	case verdict.Passed:
		return allowed
	case verdict.Changed:
		return changed
	case verdict.Audited:
		return audited
	case verdict.Warned:
		return warned
	case verdict.Denied:
		return denied
	case verdict.Failed:
	}
	return failed
}

// outcomeLabels are the values of the label outcome by gravity: the outcomes of
// the evaluations of a preview in lower case.
func outcomeLabels() [gravities]string {
	return [gravities]string{unmatched: "notmatched", skipped: "skipped", allowed: "allowed", changed: "mutated", audited: "audited", warned: "warned", failed: "error", denied: "denied"}
}

// Judge judges reviews.
type Judge interface {
	Run(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error)
}

// timedJudge measures how long reviews take.
type timedJudge struct {
	judge                  Judge
	clock                  clock.PassiveClock
	allowed, denied, error basemetrics.ObserverMetric
}

// TimeReviews returns judge and measures how long it takes.
func (r *Registry) TimeReviews(judge Judge) Judge {
	return &timedJudge{
		judge:   judge,
		clock:   r.sources.Clock,
		allowed: r.reviewDuration.WithLabelValues(verdictAllowed),
		denied:  r.reviewDuration.WithLabelValues(verdictDenied),
		error:   r.reviewDuration.WithLabelValues(verdictError),
	}
}

// Run implements Judge. The time begins with the arrival of the
// request: it includes what authentication, the body and its decoding need.
func (j *timedJudge) Run(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	arrived, ok := genericapirequest.ReceivedTimestampFrom(ctx)
	if !ok {
		arrived = j.clock.Now()
	}
	answer, err := j.judge.Run(ctx, req, view)
	observer := j.denied
	switch {
	case err != nil:
		observer = j.error
	case answer.Allowed:
		observer = j.allowed
	}
	observer.Observe(seconds(j.clock.Since(arrived)))
	return answer, err
}

// seconds is the unit of all durations. A clock that was set back makes none
// negative.
func seconds(d time.Duration) float64 { return max(0, d).Seconds() }
