// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

const (
	// markDigits is the length of a mark, and maxMarks how many there can be.
	markDigits = 16
	maxMarks   = 10_000
)

// marks stand for variables while a text is parsed. They are numbers, so that a mark
// that is a scalar without quotes can be told from one in quotes.
type marks struct {
	variables []*template.Template
	// prefix is what all marks begin with, and nothing else in the text holds.
	prefix string
}

// mark returns the text with marks, and false when that is impossible.
func mark(parts []template.Part) (string, *marks, bool) {
	var literals strings.Builder
	for _, part := range parts {
		literals.WriteString(part.Literal)
		literals.WriteByte('\n')
	}
	m := &marks{}
	for base := 731_907_624_518; m.prefix == ""; base++ {
		if prefix := strconv.Itoa(base); !strings.Contains(literals.String(), prefix) {
			m.prefix = prefix
		}
	}
	var text strings.Builder
	for _, part := range parts {
		if part.Variable == nil {
			text.WriteString(part.Literal)
			continue
		}
		text.WriteString(m.text(len(m.variables)))
		m.variables = append(m.variables, part.Variable)
	}
	return text.String(), m, len(m.variables) <= maxMarks
}

// text returns the mark of a variable.
func (m *marks) text(variable int) string { return fmt.Sprintf("%s%04d", m.prefix, variable) }

// number returns the variable of which the mark is a number.
func (m *marks) number(value int64) (int, bool) {
	pieces := m.pieces(strconv.FormatInt(value, 10))
	if len(pieces) != 1 || pieces[0].literal != "" {
		return 0, false
	}
	return pieces[0].variable, true
}

// piece is a part of a text: a literal, or a variable.
type piece struct {
	literal  string
	variable int
}

// pieces returns what a text consists of: nothing when there is no mark in it.
func (m *marks) pieces(text string) []piece {
	var result []piece
	for {
		at := strings.Index(text, m.prefix)
		if at < 0 || len(text) < at+markDigits {
			break
		}
		variable, err := strconv.Atoi(text[at+len(m.prefix) : at+markDigits])
		if err != nil || variable >= len(m.variables) {
			break
		}
		if at > 0 {
			result = append(result, piece{literal: text[:at]})
		}
		result = append(result, piece{variable: variable})
		text = text[at+markDigits:]
	}
	if result != nil && text != "" {
		result = append(result, piece{literal: text})
	}
	return result
}

// plain says which variables stand in scalars without quotes. It is false when a scalar
// with a variable has an explicit type, and when the text cannot be read this way.
func (m *marks) plain(text string) ([]bool, bool) {
	result := make([]bool, len(m.variables))
	if len(result) == 0 {
		return result, true
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, false
	}
	return result, m.styles(&document, result)
}

func (m *marks) styles(n *yaml.Node, plain []bool) bool {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if n.Kind == yaml.ScalarNode {
		for _, p := range m.pieces(n.Value) {
			if p.literal != "" {
				continue
			}
			if n.Style&yaml.TaggedStyle != 0 {
				return false
			}
			plain[p.variable] = n.Style&quoted == 0
		}
		return true
	}
	for _, inner := range n.Content { // an alias has none
		if !m.styles(inner, plain) {
			return false
		}
	}
	return true
}
