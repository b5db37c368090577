// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/relation"
)

// text is a text that is a pattern: conditions with | and & between them, where & binds
// closer. It is validateStringPatterns of Kyverno's pkg/engine/pattern.
type text struct {
	source string
	either [][]condition
}

func (c *compiler) text(source string) (*text, error) {
	if err := c.count(1 + strings.Count(source, "|") + strings.Count(source, "&")); err != nil {
		return nil, err
	}
	compiled := &text{source: source}
	for alternative := range strings.SplitSeq(source, "|") {
		var conditions []condition
		for part := range strings.SplitSeq(strings.Trim(alternative, " "), "&") {
			conditions = append(conditions, compileCondition(strings.Trim(part, " "))...)
		}
		compiled.either = append(compiled.either, conditions)
	}
	return compiled, nil
}

func (t *text) matches(value any) bool {
	switch typed := value.(type) {
	case nil:
		return t.holds(&operand{form: absent})
	case bool:
		return t.holds(&operand{form: truth, truth: typed})
	case int64:
		return t.holds(&operand{form: whole, whole: typed})
	case float64:
		return t.holds(&operand{form: decimal, decimal: typed})
	case string:
		return t.matchesText(typed)
	}
	return false
}

func (t *text) matchesText(value string) bool {
	return value == t.source || t.holds(&operand{form: written, text: value})
}

// matchesJSON is matches for the JSON of a scalar as a text.
func (t *text) matchesJSON(value any) bool {
	var number operand
	switch typed := value.(type) {
	case nil:
		return t.matchesText("null")
	case int64:
		number = operand{form: whole, whole: typed, json: true}
	case float64:
		number = operand{form: decimal, decimal: typed, json: true}
	default:
		return t.matches(value)
	}
	var buffer [numberSize]byte
	return string(number.append(buffer[:0])) == t.source || t.holds(&number)
}

func (t *text) holds(value *operand) bool {
	for _, conditions := range t.either {
		if holdAll(conditions, value) {
			return true
		}
	}
	return false
}

func holdAll(conditions []condition, value *operand) bool {
	for i := range conditions {
		if !conditions[i].holds(value) {
			return false
		}
	}
	return true
}

// condition compares a value with one text: as durations if both are, else as
// quantities if both are, else as texts, which have no order.
type condition struct {
	by         relation.Relation
	text       string
	duration   time.Duration
	isDuration bool
	quantity   resource.Quantity
	isQuantity bool
	// or is the other end of what is outside of a range.
	or *condition
}

// compileCondition returns the conditions of a text without | and &. All must hold.
func compileCondition(source string) []condition {
	by := relation.Of(source)
	switch by {
	case relation.OutOfRange:
		from, to, _ := by.Ends(source)
		above := newCondition(relation.MoreThan, to)
		below := newCondition(relation.LessThan, from)
		below.or = &above
		return []condition{below}
	case relation.InRange:
		from, to, _ := by.Ends(source)
		return []condition{newCondition(relation.MoreOrEqual, from), newCondition(relation.LessOrEqual, to)}
	case relation.Equal, relation.NotEqual, relation.MoreThan, relation.LessThan, relation.MoreOrEqual, relation.LessOrEqual:
	}
	return []condition{newCondition(by, strings.TrimSpace(source[len(by):]))}
}

func newCondition(by relation.Relation, source string) condition {
	compiled := condition{by: by, text: source}
	compiled.duration, compiled.isDuration = parseDuration(source)
	compiled.quantity, compiled.isQuantity = parseQuantity(source)
	return compiled
}

func (c *condition) holds(value *operand) bool {
	return c.compare(value) || c.or != nil && c.or.compare(value)
}

func (c *condition) compare(value *operand) bool {
	if c.isDuration {
		if duration, ok := value.duration(); ok {
			return c.by.Holds(cmp.Compare(duration, c.duration))
		}
	}
	if c.isQuantity {
		if quantity, ok := value.quantity(); ok {
			return c.by.Holds(quantity.Cmp(c.quantity))
		}
	}
	if c.by != relation.Equal && c.by != relation.NotEqual {
		return false
	}
	matches, ok := value.matches(c.text)
	return ok && matches == (c.by == relation.Equal)
}
