// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
)

// document is one document of a stream.
type document struct {
	number int
	line   int // where text begins
	text   []byte
}

func (d *document) fault(line int, err error) *Error {
	return &Error{Position: Position{Document: d.number, Line: line}, Err: err}
}

// decode returns the value of the document: nil, bool, string, int64, float64,
// []any or map[string]any, as in unstructured objects.
func (d *document) decode() (any, error) {
	// YAML reads most JSON, but not its escapes, and it does not tell 1.0 from
	// 1. What begins like JSON and is none may still be YAML in flow style.
	if first := bytes.TrimSpace(d.text); first[0] == '{' || first[0] == '[' {
		value, isJSON, err := d.decodeJSON()
		if isJSON || err != nil {
			return value, err
		}
	}
	return d.decodeYAML()
}

// split cuts a stream at its "---" and "..." lines. Each document begins at its
// first line with content; directives, comments and blank lines in front of it
// are dropped, and so are documents without content. A "---" stays where content
// follows it on the same line.
func split(data []byte) []*document {
	var found []*document
	var current *document // nil until there is content
	begin, line := 0, 0
	flush := func(end int) {
		if current != nil {
			current.text = data[begin:end]
			found = append(found, current)
		}
		current = nil
	}
	for offset := 0; offset < len(data); {
		line++
		next := len(data)
		if i := bytes.IndexByte(data[offset:], '\n'); i >= 0 {
			next = offset + i + 1
		}
		text := data[offset:next]
		if rest, starts := marker(text, "---"); starts {
			flush(offset)
			text = rest
		} else if _, ends := marker(text, "..."); ends {
			flush(offset)
			text = nil
		}
		if current == nil && isContent(text) {
			current = &document{number: len(found) + 1, line: line}
			begin = offset
		}
		offset = next
	}
	flush(len(data))
	return found
}

// marker says whether line is the document marker mark, and what follows it.
func marker(line []byte, mark string) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, []byte(mark))
	if !ok || len(rest) > 0 && !bytes.ContainsAny(rest[:1], " \t\r\n") {
		return nil, false
	}
	return rest, true
}

func isContent(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 0 && line[0] != '#' && line[0] != '%'
}
