// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What a reason may quote.
const (
	maxReasons    = 8
	maxOperand    = 128
	maxMessage    = 256
	maxFields     = 32
	maxTextOfItem = 64
)

// why says which conditions do not hold. It is asked for each request that a rule
// leaves alone: what costs more than a few words is written only for explanations.
func why(failed []result, explain bool) string {
	if len(failed) == 1 && !explain && failed[0].message == "" {
		return failed[0].place
	}
	var text strings.Builder
	for i := range failed {
		if i == maxReasons {
			fmt.Fprintf(&text, " and %d more", len(failed)-i)
			break
		}
		if i > 0 {
			text.WriteString("; ")
		}
		failed[i].describe(&text, explain)
	}
	return text.String()
}

func (r *result) describe(text *strings.Builder, explain bool) {
	text.WriteString(r.place)
	if explain {
		text.WriteString(": ")
		text.WriteString(quoted(r.key))
		text.WriteByte(' ')
		text.WriteString(r.operator.String())
		text.WriteByte(' ')
		text.WriteString(quoted(r.value))
		text.WriteString(" does not hold")
	}
	if r.message != "" {
		text.WriteString(": ")
		text.WriteString(cut(r.message, maxMessage))
	}
}

// quoted returns a value as JSON has it, as far as there is room.
func quoted(value any) string {
	var text strings.Builder
	write(&text, value)
	return cut(text.String(), maxOperand)
}

// write goes no deeper and no further than what is shown.
func write(text *strings.Builder, value any) {
	if text.Len() > maxOperand {
		return
	}
	switch typed := value.(type) {
	case nil:
		text.WriteString("null")
	case string:
		text.WriteString(strconv.Quote(cut(typed, maxTextOfItem)))
	case []any:
		text.WriteByte('[')
		for i, element := range typed {
			if text.Len() > maxOperand {
				return
			}
			if i > 0 {
				text.WriteByte(',')
			}
			write(text, element)
		}
		text.WriteByte(']')
	case map[string]any:
		if len(typed) > maxFields {
			fmt.Fprintf(text, "(an object with %d fields)", len(typed))
			return
		}
		text.WriteByte('{')
		for i, name := range slices.Sorted(maps.Keys(typed)) {
			if text.Len() > maxOperand {
				return
			}
			if i > 0 {
				text.WriteByte(',')
			}
			text.WriteString(strconv.Quote(cut(name, maxTextOfItem)))
			text.WriteByte(':')
			write(text, typed[name])
		}
		text.WriteByte('}')
	default:
		fmt.Fprint(text, typed)
	}
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
