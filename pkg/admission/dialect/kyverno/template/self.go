// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// self says how the path of a text in a value becomes that of the field of the object
// on which {{@}} stands.
type self struct {
	// lead are the parts that come before those of the value.
	lead []string
	// skip is the number of parts of the value that do not count.
	skip int
}

// newSelf drops the first two parts of a path within a rule, such as mutate and
// patchStrategicMerge, and with foreach those after it, as Kyverno's
// substituteVariablesIfAny does.
func newSelf(path []string) self {
	const dropped = 2
	for i, part := range slices.Backward(path) {
		if part == "foreach" {
			path = path[i+1:]
			break
		}
	}
	if len(path) >= dropped {
		return self{lead: path[dropped:]}
	}
	return self{skip: dropped - len(path)}
}

// expression returns the expression for a text of the value, below what starts with
// prefix.
func (s self) expression(prefix string, path []string) string {
	var text strings.Builder
	text.WriteString(prefix)
	for _, part := range slices.Concat(s.lead, path[min(s.skip, len(path)):]) {
		_, err := strconv.ParseUint(part, 10, 64)
		switch {
		case err == nil:
			text.WriteString("[" + part + "]")
		case plain(part):
			text.WriteString("." + part)
		default:
			text.WriteByte('.')
			quote(&text, part)
		}
	}
	return text.String()
}

// plain says whether JMESPath takes a name without quotes.
func plain(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		digit := r >= '0' && r <= '9' && i > 0
		if !letter && !digit {
			return false
		}
	}
	return name != ""
}

// quote writes a name as a quoted identifier of JMESPath, which is a string of JSON.
func quote(text *strings.Builder, name string) {
	text.WriteByte('"')
	for _, r := range name {
		switch {
		case r == '"' || r == '\\':
			text.WriteByte('\\')
			text.WriteRune(r)
		case unicode.IsControl(r):
			fmt.Fprintf(text, `\u%04x`, r)
		default:
			text.WriteRune(r)
		}
	}
	text.WriteByte('"')
}
