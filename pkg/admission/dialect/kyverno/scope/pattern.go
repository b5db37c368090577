// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"net/url"
	"strings"
)

// patterns returns the addresses that a urlPath with variables is taken to ask. A variable
// stands for one part of the path, or for less; where that makes no address, or not the
// group and the version, the path is taken to ask any. It is for the rights of whoever
// writes the policy: what a path asks in the end is compared with it.
func patterns(text string) []address {
	if segments := openSegments(text); len(segments) > 0 {
		found, err := addressOf(segments)
		if err == nil && found.resource.Group != anything && found.resource.Version != anything {
			return []address{found}
		}
	}
	return []address{wide(""), wide(anything)}
}

// openSegments returns the segments of a path with variables, where those with variables
// are anything, and none when that cannot be said.
func openSegments(text string) []string {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return nil
	}
	var segments []string
	var plain strings.Builder
	open := false
	add := func() {
		segment := plain.String()
		if open {
			segment = anything
		}
		segments = append(segments, segment)
		plain.Reset()
		open = false
	}
	for rest != "" && rest[0] != '?' {
		length := variableLength(rest)
		switch {
		case length > 0:
			open = true
		case rest[0] == '/':
			add()
			length = 1
		default:
			plain.WriteByte(rest[0])
			length = 1
		}
		rest = rest[length:]
	}
	add()
	for i, segment := range segments {
		unescaped, err := url.PathUnescape(segment)
		if err != nil || unescaped == "" {
			return nil
		}
		segments[i] = unescaped
	}
	return segments
}

// variableLength returns the length of the variable or the reference with which text
// begins, and 0 when it begins with neither. One without an end has all of the text.
func variableLength(text string) int {
	if strings.HasPrefix(text, "$(") {
		if end := strings.IndexByte(text, ')'); end >= 0 {
			return end + 1
		}
		return len(text)
	}
	if !strings.HasPrefix(text, "{{") {
		return 0
	}
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}
