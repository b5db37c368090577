// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"strings"
)

// kind is what the text of a pattern begins with or has in its middle.
type kind string

const (
	plain          kind = ""
	notEqual       kind = "!"
	moreThan       kind = ">"
	lessThan       kind = "<"
	moreOrEqual    kind = ">="
	lessOrEqualTo  kind = "<="
	inRange        kind = "-"
	outsideOfRange kind = "!-"
)

// patternKind is GetOperatorFromStringPattern of Kyverno's pkg/engine/operator.
func patternKind(pattern string) kind {
	if len(pattern) < 2 {
		return plain
	}
	for _, prefix := range []kind{moreOrEqual, lessOrEqualTo, moreThan, lessThan, notEqual} {
		if strings.HasPrefix(pattern, string(prefix)) {
			return prefix
		}
	}
	if _, _, ok := ends(pattern, outsideOfRange); ok {
		return outsideOfRange
	}
	if _, _, ok := ends(pattern, inRange); ok {
		return inRange
	}
	return plain
}

// ends returns both ends of a range: numbers with units, between them the separator.
func ends(pattern string, separator kind) (from, to string, ok bool) {
	end := numberWithUnit(pattern)
	if end == 0 || !strings.HasPrefix(pattern[end:], string(separator)) {
		return "", "", false
	}
	from, to = pattern[:end], pattern[end+len(separator):]
	return from, to, to != "" && numberWithUnit(to) == len(to)
}

// numberWithUnit returns how long the number is with which a text begins, with the
// letters behind it; 0 when there is none. As in Kyverno, | is a sign.
func numberWithUnit(text string) int {
	at := 0
	if text != "" && strings.IndexByte("-|+", text[0]) >= 0 {
		at = 1
	}
	whole := countDigits(text[at:])
	if whole == 0 {
		return 0
	}
	at += whole
	if at < len(text) && text[at] == '.' {
		if fraction := countDigits(text[at+1:]); fraction > 0 {
			at += 1 + fraction
		}
	}
	for at < len(text) && (text[at]|0x20 >= 'a' && text[at]|0x20 <= 'z') {
		at++
	}
	return at
}

func countDigits(text string) int {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return i
		}
	}
	return len(text)
}

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
	switch by := patternKind(pattern); by {
	case inRange:
		from, to, _ := ends(pattern, inRange)
		if matches, err := c.matchesOne(text, from, moreOrEqual); !matches || err != nil {
			return false, err
		}
		return c.matchesOne(text, to, lessOrEqualTo)
	case outsideOfRange:
		from, to, _ := ends(pattern, outsideOfRange)
		if matches, err := c.matchesOne(text, from, lessThan); matches || err != nil {
			return matches, err
		}
		return c.matchesOne(text, to, moreThan)
	case plain, notEqual, moreThan, lessThan, moreOrEqual, lessOrEqualTo:
		return c.matchesOne(text, strings.TrimSpace(pattern[len(by):]), by)
	}
	return false, nil
}

// matchesOne compares durations, then quantities, then texts, which have no order.
func (c *comparison) matchesOne(text, pattern string, by kind) (bool, error) {
	if right, ok := duration(pattern); ok {
		if left, ok := duration(text); ok {
			return by.holds(cmp.Compare(left, right)), nil
		}
	}
	if right, ok := quantity(pattern); ok {
		if left, ok := quantity(text); ok {
			return by.holds(left.Cmp(right)), nil
		}
	}
	if by != plain && by != notEqual {
		return false, nil
	}
	matches, err := c.match(pattern, text)
	return err == nil && matches != (by == notEqual), err
}

func (k kind) holds(compared int) bool {
	switch k {
	case plain:
		return compared == 0
	case notEqual:
		return compared != 0
	case moreThan:
		return compared > 0
	case lessThan:
		return compared < 0
	case moreOrEqual:
		return compared >= 0
	case lessOrEqualTo:
		return compared <= 0
	case inRange, outsideOfRange:
	}
	return false
}
