// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// ErrTooManyEvaluations says that policies, bindings and params multiply to more
// evaluations, or to longer texts, than a request may have.
var ErrTooManyEvaluations = fmt.Errorf("the request would need more than %d evaluations or %d MiB of messages: bind fewer params", maxSteps, maxTextBytes>>20)

// What one request may keep in memory.
const (
	minSteps     = 31 // room from the start: 1 KiB with the word that the runtime adds
	maxSteps     = 50_000
	maxTextBytes = 32 << 20 // of messages and expressions, which a preview repeats in its answer
	// maxUnmatched bounds the steps that say why a policy has no part in the
	// request (NotMatched and Skip), and maxReasonBytes their texts. They explain and decide nothing, so further ones
	// are counted and left out.
	maxUnmatched   = 5_000
	maxReasonBytes = 8 << 20
	// maxValueBytes bounds the values of all traces. Further ones are left out.
	maxValueBytes = 16 << 20
)

// Recorder collects the steps of one request from everything that judges it,
// so that all are heard and Fold decides once. It is not safe for concurrent
// use: what judges a request does so one after the other.
type Recorder struct {
	steps    []Evaluation // without their outcomes
	deciding int          // findings that decide
	bytes    int          // of their texts
	// unmatched is the number of findings that say why a policy has no part, and
	// unlisted that of those that are left out.
	unmatched, unlisted int
	reasonBytes         int // of the texts of unmatched findings
	valueBytes          int
}

// ListsUnmatched says whether there is room for another step that says why a
// policy has no part in the request: without room its reason need not be found.
func (r *Recorder) ListsUnmatched() bool {
	return r.unmatched < maxUnmatched && r.reasonBytes < maxReasonBytes
}

// Add records a step for each finding, in their order; all have the same origin and
// took the given time together. The origin and the findings are shared and must not
// be modified any more. It fails with ErrTooManyEvaluations; the request must then
// not be admitted.
func (r *Recorder) Add(origin *Origin, took time.Duration, findings ...Finding) error {
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.explains() || f.Trace != nil }) {
		findings = r.bounded(findings)
	}
	for i := range findings {
		if finding := &findings[i]; !finding.explains() {
			r.deciding++
			r.bytes += finding.size()
		}
	}
	if r.deciding > maxSteps || r.bytes > maxTextBytes {
		return ErrTooManyEvaluations
	}
	if n := len(r.steps) + len(findings); n > cap(r.steps) { // twice the room, so that less is copied than kept
		r.steps = append(make([]Evaluation, 0, max(minSteps, 2*n)), r.steps...)
	}
	for i := range findings {
		r.steps = append(r.steps, Evaluation{Origin: origin, Finding: &findings[i], Took: took})
	}
	return nil
}

// explains says that the finding says why a policy has no part in the request, and
// decides nothing.
func (f *Finding) explains() bool { return f.Kind == NotMatched || f.Kind == Skip }

func (f *Finding) size() int { return len(f.Message) + len(f.Expression) + len(f.Value) }

// bounded returns the findings without the reasons, and without the values, for
// which there is no room.
func (r *Recorder) bounded(findings []Finding) []Finding {
	listed := make([]Finding, 0, len(findings))
	for _, finding := range findings {
		if finding.explains() {
			if r.unmatched == maxUnmatched || r.reasonBytes+finding.size() > maxReasonBytes {
				r.unlisted++
				continue
			}
			r.unmatched++
			r.reasonBytes += finding.size()
		}
		r.boundValues(&finding)
		listed = append(listed, finding)
	}
	return listed
}

func (r *Recorder) boundValues(finding *Finding) {
	if finding.Trace == nil || len(finding.Trace.Values) == 0 {
		return
	}
	for name, value := range finding.Trace.Values {
		r.valueBytes += len(name) + len(value)
	}
	if r.valueBytes > maxValueBytes {
		short := *finding.Trace
		short.Values = nil
		finding.Trace = &short
	}
}

// Fold returns the verdict on what has been recorded. It consumes that: nothing may
// be asked of r any more.
func (r *Recorder) Fold() Verdict {
	if len(r.steps) == 0 {
		return Allow()
	}
	v := fold(r.steps)
	v.Unlisted = r.unlisted
	return v
}

type recorderKey struct{}

// WithRecorder returns a context in which what judges a request records what it
// finds in r instead of deciding.
func WithRecorder(ctx context.Context, r *Recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// RecorderFrom returns the recorder of ctx, or nil.
func RecorderFrom(ctx context.Context) *Recorder {
	r, _ := ctx.Value(recorderKey{}).(*Recorder)
	return r
}
