// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/relation"
)

// matchesPattern is Validate of Kyverno's pkg/engine/pattern for texts: | separates
// patterns of which one must match, & those that all must.
func (c *comparison) matchesPattern(text, pattern string) (bool, error) {
	if text == pattern {
		return true, nil
	}
	for either := range strings.SplitSeq(pattern, "|") {
		all := true
		for part := range strings.SplitSeq(strings.Trim(either, " "), "&") {
			matches, err := c.matchesPart(text, strings.Trim(part, " "))
			if err != nil {
				return false, err
			}
			if all = all && matches; !all {
				break
			}
		}
		if all {
			return true, nil
		}
	}
	return false, nil
}

func (c *comparison) matchesPart(text, pattern string) (bool, error) {
	by := relation.Of(pattern)
	switch by {
	case relation.InRange:
		from, to, _ := by.Ends(pattern)
		if matches, err := c.matchesOne(text, from, relation.MoreOrEqual); !matches || err != nil {
			return false, err
		}
		return c.matchesOne(text, to, relation.LessOrEqual)
	case relation.OutOfRange:
		from, to, _ := by.Ends(pattern)
		if matches, err := c.matchesOne(text, from, relation.LessThan); matches || err != nil {
			return matches, err
		}
		return c.matchesOne(text, to, relation.MoreThan)
	case relation.Equal, relation.NotEqual, relation.MoreThan, relation.LessThan, relation.MoreOrEqual, relation.LessOrEqual:
	}
	return c.matchesOne(text, strings.TrimSpace(pattern[len(by):]), by)
}

// matchesOne compares durations, then quantities, then texts, which have no order.
func (c *comparison) matchesOne(text, pattern string, by relation.Relation) (bool, error) {
	if right, ok := duration(pattern); ok {
		if left, ok := duration(text); ok {
			return by.Holds(cmp.Compare(left, right)), nil
		}
	}
	if right, ok := quantity(pattern); ok {
		if left, ok := quantity(text); ok {
			return by.Holds(left.Cmp(right)), nil
		}
	}
	if by != relation.Equal && by != relation.NotEqual {
		return false, nil
	}
	matches, err := c.match(pattern, text)
	return err == nil && matches != (by == relation.NotEqual), err
}
