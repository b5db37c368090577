// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jmespath

import (
	"context"
	"time"
)

// Run is what the evaluations of one request share: what they may still spend, and what
// stands for the clock and for chance. It is not safe for concurrent use. The zero Run
// may spend nothing.
type Run struct {
	// Now is the time at which the request was received.
	Now time.Time
	// Seed makes what is random the same for the same request.
	Seed string
	// Steps are the nodes that may still be visited.
	Steps int
	// Bytes are those of the texts, lists and objects that may still be made.
	Bytes int
	// Deletes says that the request deletes: request.object in variables stands for
	// request.oldObject then, as in Kyverno.
	Deletes bool
	// Resolved hears what each variable of a template was, or why it could not be
	// found. It is nil unless someone asks for an explanation.
	Resolved func(expression string, value any, err error)
}

// Spend takes steps and bytes from the budget. It fails with ErrBudget when there are
// not as many left, and with the error of ctx when that has ended.
func (r *Run) Spend(ctx context.Context, steps, bytes int) error {
	if err := r.spend(steps, bytes); err != nil {
		return err
	}
	return ctx.Err()
}

// take is Spend for what happens often: it looks at ctx every 256 steps.
func (r *Run) take(ctx context.Context, steps, bytes int) error {
	before := r.Steps
	if err := r.spend(steps, bytes); err != nil {
		return err
	}
	if before>>8 != r.Steps>>8 {
		return ctx.Err()
	}
	return nil
}

func (r *Run) spend(steps, bytes int) error {
	if steps < 0 || bytes < 0 || steps > r.Steps || bytes > r.Bytes {
		// Nothing that comes later may be cheap enough.
		r.Steps, r.Bytes = min(r.Steps, 0), min(r.Bytes, 0)
		return ErrBudget
	}
	r.Steps -= steps
	r.Bytes -= bytes
	return nil
}
