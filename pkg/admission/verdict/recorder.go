// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"fmt"
)

// ErrTooManyEvaluations says that policies, bindings and params multiply to more
// evaluations, or to longer texts, than a request may have.
var ErrTooManyEvaluations = fmt.Errorf("the request would need more than %d evaluations or %d MiB of messages: bind fewer params", maxSteps, maxTextBytes>>20)

// What one request may keep in memory.
const (
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
	steps []Step
	bytes int // of the texts of steps that decide
	// unmatched is the number of steps that say why a policy has no part, and
	// unlisted that of those that are left out.
	unmatched, unlisted int
	reasonBytes         int // of the texts of unmatched steps
	valueBytes          int
}

// ListsUnmatched says whether there is room for another step that says why a
// policy has no part in the request: without room its reason need not be found.
func (r *Recorder) ListsUnmatched() bool {
	return r.unmatched < maxUnmatched && r.reasonBytes < maxReasonBytes
}

// Add records a step. It fails with ErrTooManyEvaluations; the request must then
// not be admitted.
func (r *Recorder) Add(step Step) error {
	finding := &step.Finding
	size := len(finding.Message) + len(finding.Expression) + len(finding.Value)
	if finding.Kind == NotMatched || finding.Kind == Skip {
		if r.unmatched == maxUnmatched || r.reasonBytes+size > maxReasonBytes {
			r.unlisted++
			return nil
		}
		r.unmatched++
		r.reasonBytes += size
	} else {
		r.bytes += size
		if len(r.steps)-r.unmatched == maxSteps || r.bytes > maxTextBytes {
			return ErrTooManyEvaluations
		}
	}
	r.boundValues(finding)
	r.steps = append(r.steps, step)
	return nil
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

// Fold returns the verdict on what has been recorded.
func (r *Recorder) Fold() Verdict {
	if len(r.steps) == 0 {
		return Allow()
	}
	v := Fold(r.steps)
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
