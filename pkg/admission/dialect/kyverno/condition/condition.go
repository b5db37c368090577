// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition compiles preconditions once, any and all or a bare list, and
// decides for requests whether they hold, in the order of Kyverno's
// pkg/engine/variables/evaluate.go. It does not know what variables stand for, nor what
// becomes of a rule whose preconditions do not hold.
package condition

import (
	"context"
	"fmt"
	"slices"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/operator"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

// Conditions are compiled preconditions. They are immutable and safe for concurrent
// use. Nil conditions hold.
type Conditions struct {
	// restricted says that any was given: an empty list of which none holds.
	restricted bool
	any, all   []condition
	// rest is what Holds may leave out when it finds that the conditions hold.
	rest []part
	uses []template.Use
	// broken is why the conditions cannot be used.
	broken error
}

// condition is one compiled condition.
type condition struct {
	place      string
	key, value *template.Template
	operator   operator.Operator
	message    string
}

// part is a template at a place within the preconditions.
type part struct {
	place string
	value *template.Template
}

// result is a condition that has been looked at and does not hold.
type result struct {
	*condition
	key, value any
}

// Holds says whether the conditions hold. The text says why they do not: which of them,
// and its message; what its key and its value were as well, if run tells what variables
// are. Conditions are looked at in their order, those of any before those of all, until
// the answer is known; that a variable of a later one cannot be found does not matter.
// See RenderRest.
func (c *Conditions) Holds(ctx context.Context, run *jmespath.Run, scope jmespath.Scope) (bool, string, error) {
	if c == nil {
		return true, "", nil
	}
	if c.broken != nil {
		return false, "", c.broken
	}
	var failed []result
	anyHolds := !c.restricted
	for i := range c.any {
		tried, held, err := c.any[i].holds(ctx, run, scope)
		if err != nil {
			return false, "", err
		}
		if held {
			anyHolds = true
			break
		}
		failed = append(failed, tried)
	}
	// Those of all are looked at even when none of any holds: their errors count.
	for i := range c.all {
		tried, held, err := c.all[i].holds(ctx, run, scope)
		if err != nil {
			return false, "", err
		}
		if !held {
			if anyHolds {
				failed = nil
			}
			return false, why(append(failed, tried), run.Resolved != nil), nil
		}
	}
	switch {
	case anyHolds:
		return true, "", nil
	case len(failed) == 0:
		return false, "any is empty", nil
	}
	return false, why(failed, run.Resolved != nil), nil
}

// RenderRest renders what Holds has not looked at when the conditions hold: conditions
// of any after the first, and messages. Kyverno replaces the variables of a whole rule
// before it applies a patch that is not in a foreach, and fails if one of these cannot
// be found; see Mutate in its pkg/engine/mutate.
func (c *Conditions) RenderRest(ctx context.Context, run *jmespath.Run, scope jmespath.Scope) error {
	if c == nil || c.broken != nil {
		return nil
	}
	for _, p := range c.rest {
		if _, err := p.value.Render(ctx, run, scope); err != nil {
			return fmt.Errorf("%s: %w", p.place, err)
		}
	}
	return nil
}

// Uses returns where the names stand with which expressions begin, with their paths
// from the preconditions. Nobody may modify the result.
func (c *Conditions) Uses() []template.Use {
	if c == nil {
		return nil
	}
	return c.uses
}

func (c *condition) holds(ctx context.Context, run *jmespath.Run, scope jmespath.Scope) (result, bool, error) {
	tried := result{condition: c}
	var err error
	if tried.key, err = c.key.Render(ctx, run, scope); err != nil {
		return tried, false, fmt.Errorf("%s.key: %w", c.place, err)
	}
	if tried.value, err = c.value.Render(ctx, run, scope); err != nil {
		return tried, false, fmt.Errorf("%s.value: %w", c.place, err)
	}
	held, err := c.operator.Holds(ctx, run, tried.key, tried.value)
	if err != nil {
		return tried, false, fmt.Errorf("%s: %w", c.place, err)
	}
	return tried, held, nil
}

// dynamic leaves out what is the same for all requests.
func dynamic(parts []part) []part {
	return slices.DeleteFunc(parts, func(p part) bool {
		_, static := p.value.Static()
		return static
	})
}
