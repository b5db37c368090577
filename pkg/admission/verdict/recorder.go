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
	// maxUnmatched bounds the steps that say why a policy does not match. They
	// explain and decide nothing, so further ones are counted and left out.
	maxUnmatched = 5_000
)

// Recorder collects the steps of one request from everything that judges it,
// so that all are heard and Fold decides once. It is not safe for concurrent
// use: what judges a request does so one after the other.
type Recorder struct {
	steps     []Step
	bytes     int // of the texts of steps
	unmatched int
}

// Add records a step. It fails with ErrTooManyEvaluations; the request must then
// not be admitted.
func (r *Recorder) Add(step Step) error {
	finding := &step.Finding
	if finding.Kind == NotMatched {
		if r.unmatched++; r.unmatched > maxUnmatched {
			return nil
		}
		r.steps = append(r.steps, step)
		return nil
	}
	r.bytes += len(finding.Message) + len(finding.Expression) + len(finding.Value)
	if len(r.steps)-min(r.unmatched, maxUnmatched) == maxSteps || r.bytes > maxTextBytes {
		return ErrTooManyEvaluations
	}
	r.steps = append(r.steps, step)
	return nil
}

// Fold returns the verdict on what has been recorded.
func (r *Recorder) Fold() Verdict {
	if len(r.steps) == 0 {
		return Allow()
	}
	v := Fold(r.steps)
	v.Unlisted = max(0, r.unmatched-maxUnmatched)
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
