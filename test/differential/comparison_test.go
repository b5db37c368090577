// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// comparison compares both sides over one world. It is not safe for concurrent
// use; several of them may share their dialects.
type comparison struct {
	world    *world
	ours     *ours
	upstream *upstream
}

func newComparison(w *world, dialects []policy.Dialect) (*comparison, error) {
	ours, err := newOurs(w, dialects)
	return &comparison{world: w, ours: ours}, err
}

// enforce puts a scenario in force on both sides.
func (c *comparison) enforce(ctx context.Context, s *scenario) error {
	c.upstream = newUpstream(c.world, s)
	return c.ours.enforce(ctx, s)
}

// result is what became of a pair.
type result struct {
	upstream answer
	sight    sight
	// skipped says that the pair is not to be compared.
	skipped bool
	// diff is empty when both sides say the same.
	diff string
}

// more are further ways to ask ours, which take time.
type more struct{ explained, embedded, twice, rested bool }

func (c *comparison) compare(ctx context.Context, q *question, more more) (result, error) {
	var r result
	r.upstream, r.sight = c.upstream.answer(ctx, q)
	if r.skipped = deliberate(&r.upstream); r.skipped {
		return r, nil
	}
	req, err := q.request()
	if err != nil {
		return r, err
	}
	r.diff = c.diff(ctx, q, req, more, &r.upstream)
	if r.diff != "" && c.unsteady(ctx, q, &r.upstream) {
		r.skipped, r.diff = true, ""
	}
	return r, nil
}

// diff asks ours in several ways.
func (c *comparison) diff(ctx context.Context, q *question, req *request.Request, more more, want *answer) string {
	if diff := want.diff(c.ours.answer(ctx, req)); diff != "" {
		return diff
	}
	if more.twice {
		if diff := c.twice(ctx, req, want); diff != "" {
			return "when asked again, twice at a time:\n" + diff
		}
	}
	if more.rested {
		c.ours.rest()
		if diff := c.twice(ctx, req, want); diff != "" {
			return "when asked again, twice at a time, after nobody had asked for long:\n" + diff
		}
	}
	if more.explained {
		if diff := want.diff(c.ours.explained(ctx, req)); diff != "" {
			return "where an explanation is asked for:\n" + diff
		}
	}
	if more.embedded {
		if diff := want.diff(c.ours.embedded(ctx, q)); diff != "" {
			return "as a plugin of another API server:\n" + diff
		}
	}
	return ""
}

// unsteady says that upstream answers the same question now this way, now that:
// the entries of a map have no order, and an expression may show it.
func (c *comparison) unsteady(ctx context.Context, q *question, first *answer) bool {
	for range 40 {
		if again, _ := c.upstream.answer(ctx, q); first.diff(again) != "" {
			return true
		}
	}
	return false
}

// deliberate says that ours answers otherwise on purpose.
func deliberate(a *answer) bool {
	// Upstream fails the request as a whole where a policy needs no Namespace, ours
	// does not: RATIONALE.md says why.
	return strings.HasPrefix(a.Failed, `namespaces "missing" not found`)
}

// twice asks about one request twice at the same time, which may share what it
// has derived from the request.
func (c *comparison) twice(ctx context.Context, req *request.Request, want *answer) string {
	var diffs [2]string
	var both sync.WaitGroup
	for i := range diffs {
		both.Go(func() { diffs[i] = want.diff(c.ours.answer(ctx, req)) })
	}
	both.Wait()
	for _, diff := range diffs {
		if diff != "" {
			return diff
		}
	}
	return ""
}

// fresh compares one pair with nothing that went before. A pair that cannot be
// compared has no difference.
func (c *comparison) fresh(ctx context.Context, s *scenario, q *question, more more) string {
	alone, err := newComparison(c.world, dialect.All())
	if err != nil || alone.enforce(ctx, s) != nil {
		return ""
	}
	r, err := alone.compare(ctx, q, more)
	if err != nil {
		return ""
	}
	return r.diff
}

// report shows a difference in as few words as it can be had.
func (c *comparison) report(ctx context.Context, s *scenario, q *question, more more, diff string) string {
	small, asked := c.shrink(ctx, s, q, more)
	now := c.fresh(ctx, small, asked, more)
	if now == "" {
		return fmt.Sprintf("(- upstream, + ours)\n%s\nThe pair alone does not show it: what was asked or compiled before plays a part.\n%s", diff, describe(s, q))
	}
	return fmt.Sprintf("(- upstream, + ours)\n%s\nmade smaller:\n%s\n%s", diff, now, describe(small, asked))
}
