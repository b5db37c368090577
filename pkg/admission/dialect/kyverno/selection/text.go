// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"
)

// What a reason may quote.
const (
	maxReasons      = 4
	maxItems        = 8
	maxItem         = 128
	maxSortedLabels = 1000
)

// enumerate returns a list for people: each of the first items once, and a count of the
// others.
func enumerate(items []string) string {
	if len(items) == 0 {
		return "(an empty list)"
	}
	var shown []string
	for i, item := range items {
		if len(shown) == maxItems {
			return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), len(items)-i)
		}
		if item = seen(item); !slices.Contains(shown, item) {
			shown = append(shown, item)
		}
	}
	return strings.Join(shown, ", ")
}

// seen returns a text as a reason quotes it: as it stands, unless it would be invisible
// or break the line.
func seen(text string) string {
	if len(text) > maxItem {
		end := maxItem
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "..."
	}
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// asked returns the labels whose keys the selector names.
func (l *labelSelector) asked(set labels.Set) []string {
	var asked []string
	add := func(key string) {
		if value, ok := set[key]; ok && !slices.Contains(asked, key+"="+value) {
			asked = append(asked, key+"="+value)
		}
	}
	requirements, _ := l.exact.Requirements()
	for i := range requirements {
		if len(asked) > maxItems {
			break
		}
		add(requirements[i].Key())
	}
	for i := range l.pairs {
		if len(asked) > maxItems {
			break
		}
		add(l.pairs[i].key.text)
	}
	return asked
}

// labelsWithout returns the labels that are not yet shown, in order. Of very many it
// returns none.
func labelsWithout(set labels.Set, shown []string) []string {
	if len(set) > maxSortedLabels {
		return nil
	}
	var left []string
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if item := key + "=" + set[key]; !slices.Contains(shown, item) {
			left = append(left, item)
		}
	}
	return left
}
