// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a reason may quote, and what is looked at for it: previews give one for
// every installed policy, and each of them may be large.
const (
	maxItems        = 8
	maxItemText     = 128
	maxSelectorText = 256
	maxOffered      = 100 // items of one enumeration, with those that come again
	maxRequirements = 100 // of a selector
	maxValues       = 100 // of a requirement
	maxSortedLabels = 1_000
)

// enumeration is a list for people: each item once, in the order in which they
// are added, and a count instead of those that are too many.
type enumeration struct {
	items   []string
	more    int
	offered int
	endless bool // not all that there are have been looked at
}

// addAll adds items as long as that can change what is shown.
func (e *enumeration) addAll(items []string) {
	for _, item := range items {
		if e.full() {
			return
		}
		e.add(item)
	}
}

// full says, and notes, that nothing more is looked at.
func (e *enumeration) full() bool {
	e.endless = e.endless || e.offered >= maxOffered
	return e.endless
}

func (e *enumeration) add(item string) {
	e.offered++
	item = seen(item)
	switch {
	case slices.Contains(e.items, item):
	case len(e.items) == maxItems:
		e.more++
	default:
		e.items = append(e.items, item)
	}
}

// String implements fmt.Stringer.
func (e *enumeration) String() string {
	switch {
	case len(e.items) == 0:
		return "(an empty list)"
	case e.endless:
		return strings.Join(e.items, ", ") + " and more"
	case e.more > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(e.items, ", "), e.more)
	}
	return strings.Join(e.items, ", ")
}

// seen returns a text as a reason quotes it: as it stands, unless it would be
// invisible or break the line.
func seen(text string) string {
	text = cut(text, maxItemText)
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// cut returns at most limit bytes of text and a mark if that is not all.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "..."
}
