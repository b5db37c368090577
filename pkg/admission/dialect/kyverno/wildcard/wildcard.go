// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wildcard matches texts with the patterns of Kyverno policies: * stands for
// any number of characters and ? for exactly one. It agrees with
// github.com/IGLOU-EU/go-wildcard v1.0.3, which takes exponential time. There is no
// escape, and it does not know what the texts are.
package wildcard

import (
	"strings"
	"unicode/utf8"
)

// Contains says whether a text has a wildcard.
func Contains(text string) bool { return strings.ContainsAny(text, "*?") }

// Match says whether the whole text matches the pattern. Characters are those of
// Unicode; bytes that are not UTF-8 are the same character, each for itself. It takes
// as long as the pattern and the text together, times what Steps says about ? after *.
func Match(pattern, text string) bool {
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		size, ok := prefix(pattern, text)
		return ok && size == len(text)
	}
	size, ok := prefix(pattern[:star], text)
	if !ok {
		return false
	}
	text, pattern = text[size:], pattern[star+1:]
	// What stands between two * is looked for from the left: whatever comes later
	// finds the more text the earlier it ends.
	for {
		next := strings.IndexByte(pattern, '*')
		if next < 0 {
			return isSuffix(pattern, text)
		}
		end, ok := find(pattern[:next], text)
		if !ok {
			return false
		}
		text, pattern = text[end:], pattern[next+1:]
	}
}

// Steps returns how many characters Match compares at most.
func Steps(pattern, text string) int {
	steps := len(pattern) + len(text)
	for {
		star := strings.IndexByte(pattern, '*')
		if star < 0 {
			return steps
		}
		pattern = pattern[star+1:]
		next := strings.IndexByte(pattern, '*')
		if next > 0 && !literal(pattern[:next]) {
			steps += next * len(text)
		}
	}
}

// literal says whether a part of a pattern is found where its bytes are found.
func literal(part string) bool {
	return strings.IndexByte(part, '?') < 0 && !strings.ContainsRune(part, utf8.RuneError)
}

// find returns where the first text that matches part, which has no *, ends.
func find(part, text string) (end int, ok bool) {
	if literal(part) {
		at := strings.Index(text, part)
		return at + len(part), at >= 0
	}
	for at := 0; ; {
		if size, ok := prefix(part, text[at:]); ok {
			return at + size, true
		}
		if at == len(text) {
			return 0, false
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
}

// prefix returns how much of the beginning of text matches part, which has no *.
func prefix(part, text string) (size int, ok bool) {
	for len(part) > 0 {
		if size == len(text) {
			return 0, false
		}
		want, inPart := utf8.DecodeRuneInString(part)
		got, inText := utf8.DecodeRuneInString(text[size:])
		if want != '?' && want != got {
			return 0, false
		}
		part, size = part[inPart:], size+inText
	}
	return size, true
}

// isSuffix says whether the end of text matches part, which has no *.
func isSuffix(part, text string) bool {
	for len(part) > 0 {
		if text == "" {
			return false
		}
		want, inPart := utf8.DecodeLastRuneInString(part)
		got, inText := utf8.DecodeLastRuneInString(text)
		if want != '?' && want != got {
			return false
		}
		part, text = part[:len(part)-inPart], text[:len(text)-inText]
	}
	return true
}
