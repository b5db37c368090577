// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern

import "strings"

// relation is how a condition compares, as it is written.
type relation string

const (
	equal       relation = ""
	notEqual    relation = "!"
	moreThan    relation = ">"
	lessThan    relation = "<"
	moreOrEqual relation = ">="
	lessOrEqual relation = "<="
)

// relationOf returns the relation with which a text begins. A sign alone is a text.
func relationOf(source string) relation {
	if len(source) < 2 {
		return equal
	}
	for _, prefix := range []relation{moreOrEqual, lessOrEqual, moreThan, lessThan, notEqual} {
		if strings.HasPrefix(source, string(prefix)) {
			return prefix
		}
	}
	return equal
}

// holds says whether the relation holds, compared being negative, zero or positive.
func (r relation) holds(compared int) bool {
	switch r {
	case equal:
		return compared == 0
	case notEqual:
		return compared != 0
	case moreThan:
		return compared > 0
	case lessThan:
		return compared < 0
	case moreOrEqual:
		return compared >= 0
	case lessOrEqual:
		return compared <= 0
	}
	return false
}

// ends returns both ends of a range: numbers, with units or without, and the separator
// between them.
func ends(source, separator string) (from, to string, ok bool) {
	end := numberWithUnit(source)
	if end == 0 || !strings.HasPrefix(source[end:], separator) {
		return "", "", false
	}
	from, to = source[:end], source[end+len(separator):]
	return from, to, to != "" && numberWithUnit(to) == len(to)
}

// numberWithUnit returns how long the number is with which a text begins, with the
// letters behind it; 0 if there is none.
func numberWithUnit(source string) int {
	at := 0
	if source != "" && (source[0] == '-' || source[0] == '+') {
		at = 1
	}
	digits := countDigits(source[at:])
	if digits == 0 {
		return 0
	}
	at += digits
	if strings.HasPrefix(source[at:], ".") {
		if fraction := countDigits(source[at+1:]); fraction > 0 {
			at += 1 + fraction
		}
	}
	for at < len(source) && isLetter(source[at]) {
		at++
	}
	return at
}

func countDigits(source string) int {
	for i := range len(source) {
		if source[i] < '0' || source[i] > '9' {
			return i
		}
	}
	return len(source)
}

func isLetter(character byte) bool {
	return character|0x20 >= 'a' && character|0x20 <= 'z'
}
