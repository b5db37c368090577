// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package relation reads how the text of a pattern wants a value to compare: the signs
// with which it begins, and ranges such as 10-20 and 1Gi!-2Gi. It is
// GetOperatorFromStringPattern of Kyverno's pkg/engine/operator.
package relation

import "strings"

// Relation is how a pattern wants a value to compare, as it is written.
type Relation string

// The relations. InRange and OutOfRange stand between the ends of a range, which belong
// to it.
const (
	Equal       Relation = ""
	NotEqual    Relation = "!"
	MoreThan    Relation = ">"
	LessThan    Relation = "<"
	MoreOrEqual Relation = ">="
	LessOrEqual Relation = "<="
	InRange     Relation = "-"
	OutOfRange  Relation = "!-"
)

// Of returns the relation of a text. A sign alone is a text to be equal to.
func Of(pattern string) Relation {
	if len(pattern) < 2 {
		return Equal
	}
	for _, prefix := range []Relation{MoreOrEqual, LessOrEqual, MoreThan, LessThan, NotEqual} {
		if strings.HasPrefix(pattern, string(prefix)) {
			return prefix
		}
	}
	for _, between := range []Relation{OutOfRange, InRange} {
		if _, _, ok := between.Ends(pattern); ok {
			return between
		}
	}
	return Equal
}

// Holds says whether a value is in the relation to another one, compared being
// negative, zero or positive as for cmp.Compare. It is false for ranges, which have two
// ends.
func (r Relation) Holds(compared int) bool {
	switch r {
	case Equal:
		return compared == 0
	case NotEqual:
		return compared != 0
	case MoreThan:
		return compared > 0
	case LessThan:
		return compared < 0
	case MoreOrEqual:
		return compared >= 0
	case LessOrEqual:
		return compared <= 0
	case InRange, OutOfRange:
	}
	return false
}

// Ends returns both ends of a range that has the relation between them.
func (r Relation) Ends(pattern string) (from, to string, ok bool) {
	end := numberWithUnit(pattern)
	if end == 0 || !strings.HasPrefix(pattern[end:], string(r)) {
		return "", "", false
	}
	from, to = pattern[:end], pattern[end+len(r):]
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
	for at < len(text) && isLetter(text[at]) {
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

func isLetter(character byte) bool {
	return character|0x20 >= 'a' && character|0x20 <= 'z'
}
