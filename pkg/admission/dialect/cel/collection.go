// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/cel-go/common/types/ref"
)

// maxRuleValues bounds the values of one rule.
const maxRuleValues = 32

// collection collects the values of one rule within their bounds.
type collection struct {
	*explanation
	values map[string]json.RawMessage
	more   int
}

const moreKey = "..."

// add adds what a run has seen: the leaves of the expression, and then those of
// the variables that it read.
func (c *collection) add(ctx context.Context, r *run) {
	for _, sight := range r.seen {
		c.more += sight.expression.tooLong
		for i := range sight.expression.leaves {
			leaf := &sight.expression.leaves[i]
			if _, again := c.values[leaf.text]; again {
				continue
			}
			if value, ok := sight.value(leaf); ok {
				c.put(ctx, leaf, value)
			}
		}
	}
}

// value returns false for what was not looked at.
func (s *sight) value(l *leaf) (ref.Val, bool) {
	for _, id := range l.ids {
		if value, ok := s.state.Value(id); ok && value != nil {
			return value, true
		}
	}
	return nil, false
}

func (c *collection) put(ctx context.Context, l *leaf, value ref.Val) {
	if len(c.values) == maxRuleValues || c.purse.left() == 0 || ctx.Err() != nil {
		c.more++
		return
	}
	var encoder encoder
	var text json.RawMessage
	if concealed := c.over(ctx, l.reads); concealed != "" {
		text = mark("concealed", concealed, maxValueBytes)
	} else {
		text = encoder.value(value)
	}
	c.purse.spend(valueCost + uint64(len(text))/valueBytes + lookCost*encoder.work)
	if len(l.text)+len(text) > c.room {
		c.more++
		return
	}
	c.room -= len(l.text) + len(text)
	if c.values == nil {
		c.values = map[string]json.RawMessage{}
	}
	c.values[l.text] = text
}

func (c *collection) finish() map[string]json.RawMessage {
	if c.more > 0 {
		if c.values == nil {
			c.values = map[string]json.RawMessage{}
		}
		c.values[moreKey] = stringJSON(fmt.Sprintf("%d more", c.more), maxValueBytes)
	}
	return c.values
}
