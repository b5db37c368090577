// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package message keeps the messages of conditions within their bounds. It does
// not know what they say.
package message

import (
	"fmt"
	"strings"
)

// MaxBytes bounds the message of a condition.
const MaxBytes = 8 << 10

// Bounded cuts a text to what a condition may say.
func Bounded(text string) string {
	const cut = " ..."
	if len(text) > MaxBytes {
		text = text[:MaxBytes-len(cut)] + cut
	}
	return strings.ToValidUTF8(text, "")
}

// Listed puts as many of the texts into one as there is room for, at least a part
// of the first, and says how many are left out.
func Listed(texts []string) string {
	const room = MaxBytes - len("; and 1000000 more")
	var list strings.Builder
	for i, text := range texts {
		if i > 0 {
			text = "; " + text
		}
		if list.Len()+len(text) > room {
			if i == 0 {
				list.WriteString(text[:room])
				i++
			}
			if left := len(texts) - i; left > 0 {
				fmt.Fprintf(&list, "; and %d more", left)
			}
			break
		}
		list.WriteString(text)
	}
	return strings.ToValidUTF8(list.String(), "")
}
